/** Capabilities of the server. */

import type { AgentCapabilities } from "@ag-ui/core";
import { api } from "./connection/api";
import { Store } from "./store";

export const capabilities = new Store<AgentCapabilities | null>(null);

/** Facts of this server that AG-UI has no field for. */
export interface CustomCapabilities {
  /** Messages that a new chat offers. */
  suggestions?: string[];
  /** What `AGUI_AGENT` names, unless it is the built-in assistant. */
  agent?: string;
  model?: { provider: string; name: string };
  /** Names of models that a caller may choose. */
  models?: string[];
  maxBodyBytes?: number;
}

export function customOf(known: AgentCapabilities | null): CustomCapabilities {
  return (known?.custom ?? {}) as CustomCapabilities;
}

/** The name of the agent; empty if the server does not say it. */
export function agentName(known: AgentCapabilities | null): string {
  const { agent, model } = customOf(known);
  const name = known?.identity?.name;
  if (name !== undefined && name !== "agui-container") return name;
  return agent ?? (model === undefined ? "" : "assistant");
}

/** The name of the model that answers by default; empty if the server does not say it. */
export function modelName(known: AgentCapabilities | null): string {
  const { model } = customOf(known);
  return model?.provider === "offline" ? "offline model" : (model?.name ?? "");
}

/** The model that the user has chosen; empty for the default. */
export const chosenModel = new Store("");

/** Bytes of a request that the server takes, if they are known. */
export function maxBodyBytes(): number | undefined {
  return customOf(capabilities.value).maxBodyBytes;
}

export async function loadCapabilities(): Promise<void> {
  try {
    capabilities.set(await api.capabilities());
    if (!customOf(capabilities.value).models?.includes(chosenModel.value)) chosenModel.set("");
  } catch {
    capabilities.set(null);
  }
}
