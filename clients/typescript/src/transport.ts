/** One interface for runs and commands over WebSocket and over HTTP. */

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
  /** Receive an event. `seq` is its number in the run, from 1, or undefined if the server does not number events. */
  event(event: BaseEvent, seq: number | undefined): void;
}

export interface Transport {
  /** True if the server may merge adjacent deltas of one message. The merged one has the number of its last. */
  readonly mergesDeltas: boolean;

  /**
   * Deliver a stream up to the event that ends the run.
   *
   * @throws RunRefusedError if the server refuses it, ConnectionDropped if the connection fails before the run's end,
   *   and the reason of `signal` if that is aborted.
   */
  stream(request: StreamRequest, observer: StreamObserver, signal: AbortSignal): Promise<void>;

  /** Send a command and return its result. Throws as `stream` does. */
  command(command: Command, signal?: AbortSignal): Promise<CommandResult>;

  /** Close unused connections. The next request opens a new one. */
  close(): void;
}

/** A value, or a function that makes one for each connection. */
export type Provided<T> = T | (() => T | Promise<T>);

/** Return the value. Throws ConnectionDropped if its function fails, because the function may need the network. */
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

/** Characters of a session id that AgentCore takes: at least, at most. */
const SESSION_LENGTH = [33, 256] as const;

/** Throw a TypeError for a session id that AgentCore refuses, so that the mistake shows before the first deployment. */
export function checkSessionId(sessionId: string | undefined): void {
  const [least, most] = SESSION_LENGTH;
  if (sessionId === undefined || (sessionId.length >= least && sessionId.length <= most)) return;
  throw new TypeError(
    `sessionId has ${sessionId.length} characters. AgentCore takes ${least} to ${most}: use crypto.randomUUID(), for example.`,
  );
}

/** Headers that name the caller. */
export function callerHeaders(token: string | undefined, sessionId: string | undefined): Record<string, string> {
  return {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(sessionId === undefined ? {} : { [SESSION]: sessionId }),
  };
}

/** Absolute URL; a relative one belongs to the page. */
export function absolute(url: string | URL): URL {
  return new URL(url, globalThis.location?.href);
}

/** An event that ends its run. */
export function isTerminal(event: BaseEvent): boolean {
  return event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
}

/** Make an error of a refusal, which is a RUN_ERROR event or a control frame. */
export function refusal(fields: Record<string, unknown>): RunRefusedError {
  const metadata = isObject(fields.metadata) ? fields.metadata : fields;
  const code: ErrorCode = text(fields.code) ?? "INTERNAL_ERROR";
  return new RunRefusedError({
    code,
    message: text(fields.message) ?? `The server refused the request: ${code}.`,
    retryable: typeof metadata.retryable === "boolean" ? metadata.retryable : RETRYABLE.has(code),
    requestId: text(metadata.requestId),
  });
}

/** Codes of AgentCore itself for which another attempt may succeed. AgentCore sends no `retryable`. */
const RETRYABLE = new Set<string>(["SESSION_BUSY", "RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR"]);

/** Parse a frame, which must be a JSON object. Throws AgentClientError for any other text. */
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
