/**
 * Errors of the agents: `runAgent()` and `connectAgent()` reject with one of them.
 *
 * Rule: an error that the server sent keeps the server's code. An error of the network has the number of attempts. If a
 * run fails after it has started, it ends with the event RUN_ERROR, which is no error here.
 */

/** Codes of the server's error table, and any other code that a gateway in front of it sends. */
export type ErrorCode = (typeof ERROR_CODES)[number] | (string & {});

/** Codes of the server's error table. */
export const ERROR_CODES = [
  "UNAUTHORIZED",
  "ACCESS_DENIED",
  "VALIDATION_ERROR",
  "PAYLOAD_TOO_LARGE",
  "RATE_LIMIT_EXCEEDED",
  "THREAD_BUSY",
  "RUN_NOT_FOUND",
  "SHUTTING_DOWN",
  "STORE_UNAVAILABLE",
  "AUTH_UNAVAILABLE",
  "THREAD_NOT_FOUND",
  "FILE_NOT_FOUND",
  "INTERNAL_ERROR",
  "AGENT_ERROR",
  "RUN_TIMEOUT",
  "RUN_LIMIT_EXCEEDED",
  "RUN_LOST",
  "MODEL_ERROR",
  "MODEL_ACCESS_DENIED",
  "MODEL_NOT_FOUND",
  "MODEL_REJECTED",
  "MODEL_THROTTLED",
  "MODEL_TIMEOUT",
  "MODEL_UNAVAILABLE",
  "MODEL_CONTEXT_EXCEEDED",
] as const;

/** Base class of every error of this package. */
export class AgentClientError extends Error {
  override name = "AgentClientError";
}

/** Facts of a refusal, as the server sends them. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  /** True if the same request may succeed later. */
  retryable: boolean;
  /** Identifies the request in the server's log. */
  requestId?: string | undefined;
}

/** The server refused a run or a command, and started no run. */
export class RunRefusedError extends AgentClientError {
  override name = "RunRefusedError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly requestId: string | undefined;

  constructor({ code, message, retryable, requestId }: Refusal) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.requestId = requestId;
  }
}

/** The server could not be reached for `giveUpAfterMs`. The run may still be open there; `connectAgent()` finds it. */
export class ConnectionLostError extends AgentClientError {
  override name = "ConnectionLostError";

  /**
   * @param attempts failed connections in a row.
   * @param cause the last failure.
   */
  constructor(
    message: string,
    readonly attempts: number,
    override readonly cause: unknown,
  ) {
    super(message);
  }
}

/** The server did not end a cancelled run within `cancelTimeoutMs`. The run may still be open there. */
export class CancelTimeoutError extends AgentClientError {
  override name = "CancelTimeoutError";

  constructor(
    readonly runId: string,
    timeoutMs: number,
  ) {
    super(`The server did not confirm within ${timeoutMs} ms that run ${runId} is cancelled.`);
  }
}

/** A connection failed, and another attempt may succeed. Users see this error only as a `cause`. */
export class ConnectionDropped extends AgentClientError {
  override name = "ConnectionDropped";
}
