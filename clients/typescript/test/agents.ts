/** The agents under test, one per transport, and what their runs give. */

import { randomUUID } from "node:crypto";
import { type AbstractAgent, type BaseEvent, enforceEvents, type RunAgentInput, verifyEvents } from "@ag-ui/client";
import { lastValueFrom, tap, toArray } from "rxjs";
import { WebSocket } from "ws";
import {
  type Provided,
  ResumableHttpAgent,
  type ResumableHttpAgentConfig,
  type ResumeOptions,
  WebSocketAgent,
  type WebSocketAgentConfig,
  type WebSocketFactory,
} from "../src/index.js";

/** URLs of one server. */
export interface Endpoints {
  http: string;
  ws: string;
}

export type Agent = WebSocketAgent | ResumableHttpAgent;
type Config = ResumeOptions & {
  threadId?: string;
  token?: Provided<string>;
  sessionId?: string;
  headers?: Record<string, string>;
};

export const webSocketFactory: WebSocketFactory = (url, protocols, headers) =>
  new WebSocket(url, protocols, { headers });

const FAST = { initialDelayMs: 1, maxDelayMs: 50, giveUpAfterMs: 20_000 };

export function webSocketAgent(
  relay: Pick<Endpoints, "ws">,
  config: Partial<WebSocketAgentConfig> = {},
): WebSocketAgent {
  return new WebSocketAgent({ url: relay.ws, webSocketFactory, ...FAST, ...config });
}

export function httpAgent(
  relay: Pick<Endpoints, "http">,
  config: Partial<ResumableHttpAgentConfig> = {},
): ResumableHttpAgent {
  return new ResumableHttpAgent({ url: relay.http, ...FAST, ...config });
}

/** Both agents by the name of their transport. */
export const AGENTS: Record<string, (server: Endpoints, config?: Config) => Agent> = {
  WebSocket: webSocketAgent,
  HTTP: httpAgent,
};

/** Sockets that are idle keep the process alive. */
export function close(agent: AbstractAgent): void {
  if (agent instanceof WebSocketAgent) agent.close();
}

export function inputOf(said: string, fields: Partial<RunAgentInput> = {}): RunAgentInput {
  return {
    threadId: randomUUID(),
    runId: randomUUID(),
    protocolVersion: "1.0",
    state: {},
    messages: [{ id: randomUUID(), role: "user", content: said }],
    tools: [],
    context: [],
    forwardedProps: {},
    ...fields,
  };
}

/** Events of a run, as the official client lets them pass. `onEvent` sees each as it comes. */
export async function eventsOf(
  agent: AbstractAgent,
  input: RunAgentInput,
  onEvent: (event: BaseEvent) => void = () => {},
): Promise<BaseEvent[]> {
  return await lastValueFrom(agent.run(input).pipe(enforceEvents(), verifyEvents(), tap(onEvent), toArray()));
}

/** Events in a form that is the same for equal runs: ids by their order, no times, adjacent deltas joined. */
export function normalized(events: readonly BaseEvent[]): unknown[] {
  const names = new Map<string, string>();
  const joined: Record<string, unknown>[] = [];
  for (const event of events) {
    const last = joined.at(-1);
    const isSame = last?.type === event.type && last.messageId === event.messageId;
    if (typeof event.delta === "string" && isSame) last.delta = `${last.delta}${event.delta}`;
    else joined.push({ ...event });
  }
  const named = (key: string, value: unknown) => {
    if (key === "timestamp" || key === "usage") return undefined;
    if (!/id$/i.test(key) || typeof value !== "string") return value;
    names.set(value, names.get(value) ?? `id ${names.size}`);
    return names.get(value);
  };
  return joined.map((event) => JSON.parse(JSON.stringify(event, named)));
}

export function textOf(events: readonly BaseEvent[]): string {
  return events.map((event) => (event.type === "TEXT_MESSAGE_CONTENT" ? event.delta : "")).join("");
}

/** Resolves when `isTrue` is; bounded by the test's own timeout. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}
