/** What each test gets of its own. */

import type { BaseEvent } from "@ag-ui/client";
import { Relay } from "./relay.js";

/** Use a relay, and close it whatever happens. A subtest has no hooks of its own. */
export async function withRelay(target: number, use: (relay: Relay) => Promise<void>): Promise<void> {
  const relay = await Relay.to(target);
  try {
    await use(relay);
  } finally {
    relay.close();
  }
}

export function typesOf(events: readonly BaseEvent[]): string[] {
  return events.map(({ type }) => type);
}
