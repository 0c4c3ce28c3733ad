/** The seam between a run and the way in which its events arrive: one interface for WebSocket and HTTP. */

import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { AgentClientError, ConnectionDropped, type ErrorCode, RunRefusedError } from "./errors.js";

/** A command of the server, such as `{ type: "cancel", threadId, runId }`. */
export interface Command {
  type: string;
  [field: string]: unknown;
}

export type CommandResult = Record<string, unknown>;

/** Start a run, or read one from the event after number `after`. */
export type StreamRequest = { input: RunAgentInput } | { attach: { threadId: string; runId: string; after: number } };

/** Receives one stream. */
export interface StreamObserver {
  /**
   * The request is being sent, or its answer has begun. A transport may call this for both.
   *
   * @param send sends a command to the same server, on the same connection where there is one.
   */
  opened(send: (command: Command) => Promise<unknown>): void;
  /** `seq` is the event's number in the run, from 1; undefined if the server does not number events. */
  event(event: BaseEvent, seq: number | undefined): void;
}

export interface Transport {
  /**
   * Deliver a stream up to the event that ends the run.
   *
   * @throws RunRefusedError if the server refuses it, ConnectionDropped if the connection fails before the run's end,
   *   and the reason of `signal` if that is aborted.
   */
  stream(request: StreamRequest, observer: StreamObserver, signal: AbortSignal): Promise<void>;

  /** Ask a command and return its result. Throws as `stream` does. */
  command(command: Command, signal?: AbortSignal): Promise<CommandResult>;

  /** Close what is open and unused. The next request opens it again. */
  close(): void;
}

/** A value, or a function that makes it anew for each connection. */
export type Provided<T> = T | (() => T | Promise<T>);

/** The value. Throws ConnectionDropped if its function fails, because that may need the network too. */
export async function provide<T extends string | URL | undefined>(provided: Provided<T>): Promise<T> {
  if (typeof provided !== "function") return provided;
  try {
    return await provided();
  } catch (error) {
    throw new ConnectionDropped("The URL or token for a connection could not be made.", { cause: error });
  }
}

/** AgentCore's name for the id of a session: an HTTP header, or a query parameter of a socket's URL. */
export const SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id";

/** Absolute URL; a relative one belongs to the page. */
export function absolute(url: string | URL): URL {
  return new URL(url, globalThis.location?.href);
}

/** An event that ends its run. */
export function isTerminal(event: BaseEvent): boolean {
  return event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
}

/** The error for what a server says of a refused request, in a RUN_ERROR event or in a control frame. */
export function refusal(said: Record<string, unknown>): RunRefusedError {
  const metadata = isObject(said.metadata) ? said.metadata : said;
  const code: ErrorCode = text(said.code) ?? "INTERNAL_ERROR";
  return new RunRefusedError({
    code,
    message: text(said.message) ?? `The server refused the request: ${code}.`,
    retryable: typeof metadata.retryable === "boolean" ? metadata.retryable : PASSING.has(code),
    requestId: text(metadata.requestId),
  });
}

/** Codes of AgentCore itself that are worth another attempt. It sends no `retryable`. */
const PASSING = new Set<string>(["SESSION_BUSY", "RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR"]);

/** A frame's JSON object. Throws `AgentClientError` for anything else. */
export function parseObject(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    if (isObject(value)) return value;
  } catch {} // the same error as for JSON that is no object
  throw new AgentClientError("The server sent a frame that is not a JSON object.");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
