/** Capabilities of the server. */

import type { AgentCapabilities } from "@ag-ui/core";
import { api } from "./connection/api";
import { Store } from "./store";

export const capabilities = new Store<AgentCapabilities | null>(null);

/** Facts of this server that AG-UI has no field for. */
export interface CustomCapabilities {
  /** Messages that a new chat offers. */
  suggestions?: string[];
  model?: { provider: string; name: string };
  maxBodyBytes?: number;
}

export function customOf(known: AgentCapabilities | null): CustomCapabilities {
  return (known?.custom ?? {}) as CustomCapabilities;
}

/** Bytes of a request that the server takes, if they are known. */
export function maxBodyBytes(): number | undefined {
  return customOf(capabilities.value).maxBodyBytes;
}

export async function loadCapabilities(): Promise<void> {
  try {
    capabilities.set(await api.capabilities());
  } catch {
    capabilities.set(null);
  }
}
