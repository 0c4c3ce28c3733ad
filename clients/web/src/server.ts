/** Capabilities of the server, and which of its agents and models the user has chosen. */

import type { AgentCapabilities } from "@ag-ui/core";
import { read, write } from "./config";
import { api } from "./connection/api";
import type { Price } from "./state/cost";
import { Store } from "./store";

export const capabilities = new Store<AgentCapabilities | null>(null);

/** Facts of an agent that AG-UI has no field for. */
interface AgentFacts {
  /** Messages that a new chat offers. */
  suggestions?: string[];
  model?: { provider: string; name: string };
  /** Names of models that a caller may choose. */
  models?: string[];
}

interface NamedAgent extends AgentFacts {
  name: string;
  description?: string;
}

/** Facts of this server that AG-UI has no field for. */
export interface CustomCapabilities extends AgentFacts {
  /** The agent that answers by default, unless it is the built-in assistant. */
  agent?: string;
  /** Agents that a caller may choose. */
  agents?: NamedAgent[];
  maxBodyBytes?: number;
  prices?: Record<string, Price>;
}

export function customOf(known: AgentCapabilities | null): CustomCapabilities {
  return (known?.custom ?? {}) as CustomCapabilities;
}

const AGENT_KEY = "agui.agent";
const MODEL_KEY = "agui.model";

/** The agent that the user has chosen; empty for the default. */
export const chosenAgent = new Store(read(AGENT_KEY) ?? "");

/** The model that the user has chosen; empty for the default. */
export const chosenModel = new Store(read(MODEL_KEY) ?? "");

export function chooseAgent(name: string): void {
  write(AGENT_KEY, name);
  chosenAgent.set(name);
  chooseModel("");
}

export function chooseModel(name: string): void {
  write(MODEL_KEY, name);
  chosenModel.set(name);
}

/** What is known of the agent that answers. */
export function agentOf(known: AgentCapabilities | null, chosen: string): AgentFacts & { description?: string } {
  const custom = customOf(known);
  const named = custom.agents?.find(({ name }) => name === chosen);
  const description = known?.identity?.description;
  return named ?? (description === undefined ? custom : { ...custom, description });
}

/** The name of the agent that answers by default; empty if the server does not say it. */
export function agentName(known: AgentCapabilities | null): string {
  const { agent, model } = customOf(known);
  const name = known?.identity?.name;
  if (name !== undefined && name !== "agui-container") return name;
  return agent ?? (model === undefined ? "" : "assistant");
}

/** The name of the model that answers by default; empty if the server does not say it. */
export function modelName({ model }: AgentFacts): string {
  return model?.provider === "offline" ? "offline model" : (model?.name ?? "");
}

/** The fields of `forwardedProps` that say who answers. */
export function choices(): Record<string, string> {
  const chosen = { agent: chosenAgent.value, model: chosenModel.value };
  return Object.fromEntries(Object.entries(chosen).filter(([, name]) => name !== ""));
}

/** Bytes of a request that the server takes, if they are known. */
export function maxBodyBytes(): number | undefined {
  return customOf(capabilities.value).maxBodyBytes;
}

export async function loadCapabilities(): Promise<void> {
  try {
    const known = await api.capabilities();
    if (!customOf(known).agents?.some(({ name }) => name === chosenAgent.value)) chosenAgent.set("");
    if (!agentOf(known, chosenAgent.value).models?.includes(chosenModel.value)) chosenModel.set("");
    capabilities.set(known);
  } catch {
    capabilities.set(null);
  }
}
