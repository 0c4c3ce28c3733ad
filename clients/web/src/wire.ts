/** The transport of runs: SSE or WebSocket. */

import { transport } from "./chat";
import { read, write } from "./config";
import type { Wire } from "./connection/transport";
import { Store } from "./store";

const WIRE_KEY = "agui.wire";

export const wire = new Store<Wire>(read(WIRE_KEY) === "websocket" ? "websocket" : "sse");

export function setWire(chosen: Wire): void {
  write(WIRE_KEY, chosen);
  wire.set(chosen);
  transport.wire = chosen;
}

transport.wire = wire.value;
