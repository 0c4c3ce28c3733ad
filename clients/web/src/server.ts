/** Capabilities of the server. */

import type { AgentCapabilities } from "@ag-ui/core";
import { api } from "./connection/api";
import { Store } from "./store";

export const capabilities = new Store<AgentCapabilities | null>(null);

export async function loadCapabilities(): Promise<void> {
  try {
    capabilities.set(await api.capabilities());
  } catch {
    capabilities.set(null);
  }
}
