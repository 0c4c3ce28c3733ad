/**
 * One run as an Observable that reconnects when its connection drops.
 *
 * Rule: each event is delivered once and in order. The cursor is the number of the last delivered event. A new
 * connection attaches after the cursor. Before the first event it sends the same input again: the server then returns
 * the run that has these ids, and never starts it twice. An event whose predecessor is missing counts as a drop.
 */

import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { Observable, type Subscriber } from "rxjs";
import { Backoff, type BackoffOptions, INITIAL_DELAY_MS, onAbort, sleep } from "./backoff.js";
import { CancelTimeoutError, ConnectionDropped, ConnectionLostError, RunRefusedError } from "./errors.js";
import { type Command, isTerminal, type StreamObserver, type StreamRequest, type Transport } from "./transport.js";

export interface ResumeOptions extends BackoffOptions {
  /** How long `abortRun()` waits for the server to end the run. Default 5,000. */
  cancelTimeoutMs?: number;
}

/** A run to start, or without `input` one that the server knows. */
export interface RunTarget {
  threadId: string;
  runId: string;
  input?: RunAgentInput;
}

/**
 * Follow a run to its end.
 *
 * An abort of `cancel` cancels the run at the server. The Observable then delivers the remaining events up to the run's
 * end. An unsubscribe only closes the connection, and the server applies `AGUI_ON_DISCONNECT` to the run.
 */
export function followRun(
  transport: Transport,
  target: RunTarget,
  options: ResumeOptions,
  cancel: AbortSignal,
): Observable<BaseEvent> {
  return new Observable((subscriber) => {
    const follower = new RunFollower(transport, target, options, cancel, subscriber);
    follower.follow().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
    return () => follower.stop();
  });
}

/** Events that a server may merge with the ones before. */
const MERGED = new Set<string>(["TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"]);

class RunFollower implements StreamObserver {
  private readonly stopping = new AbortController();
  private readonly backoff: Backoff;
  private cursor = 0;
  private hasBegun = false;
  private hasEnded = false;
  private wasRequested = false;
  private removeCancelListener = () => {};

  constructor(
    private readonly transport: Transport,
    private readonly target: RunTarget,
    private readonly options: ResumeOptions,
    private readonly cancel: AbortSignal,
    private readonly subscriber: Subscriber<BaseEvent>,
  ) {
    this.backoff = new Backoff(options);
  }

  /** Deliver the run's events. Throws the errors that `errors.ts` exports. */
  async follow(): Promise<void> {
    const stopTimer = this.limitCancel();
    try {
      while (!(this.hasEnded || this.isUnsent)) await this.attempt();
    } finally {
      stopTimer();
    }
  }

  /** Close the connection. */
  stop(reason?: Error): void {
    this.stopping.abort(reason);
  }

  opened(send: (command: Command) => Promise<unknown>): void {
    this.wasRequested = true;
    this.removeCancelListener();
    const closed = new AbortController();
    const removeListener = onAbort(this.cancel, () => void this.sendCancel(send, closed.signal));
    this.removeCancelListener = () => {
      removeListener();
      closed.abort();
    };
  }

  /** Cancel the run at the server, and again after a failure until the stream of the run is `closed`. */
  private async sendCancel(send: (command: Command) => Promise<unknown>, closed: AbortSignal): Promise<void> {
    const { threadId, runId } = this.target;
    while (!closed.aborted) {
      try {
        await send({ type: "cancel", threadId, runId });
        return;
      } catch (error) {
        // A cancel that arrives before its run is refused, and is sent again when the stream opens.
        if (error instanceof RunRefusedError && !error.retryable) return;
      }
      await sleep(this.options.initialDelayMs ?? INITIAL_DELAY_MS, [closed]);
    }
  }

  event(event: BaseEvent, seq: number | undefined): void {
    if (seq !== undefined) {
      if (seq <= this.cursor) return;
      if (this.isAfterGap(event, seq)) throw new ConnectionDropped(`The event after number ${this.cursor} is missing.`);
      this.cursor = seq;
    }
    this.hasBegun = true;
    this.hasEnded = isTerminal(event);
    this.backoff.reset();
    this.subscriber.next(event);
  }

  /** True if an event before this one is missing. */
  private isAfterGap(event: BaseEvent, seq: number): boolean {
    return seq > this.cursor + 1 && !(this.transport.mergesDeltas && MERGED.has(event.type));
  }

  /** True if the run was cancelled before its input was sent, so that the server has no run to cancel. */
  private get isUnsent(): boolean {
    return this.cancel.aborted && !this.wasRequested && this.target.input !== undefined;
  }

  private async attempt(): Promise<void> {
    try {
      await this.transport.stream(this.request(), this, this.stopping.signal);
      if (!this.hasEnded) throw new ConnectionDropped("The stream ended before the run did.");
    } catch (error) {
      if (this.hasEnded || this.isUnsent) return;
      this.stopping.signal.throwIfAborted();
      await this.recover(error);
    } finally {
      this.removeCancelListener();
    }
  }

  private request(): StreamRequest {
    const { input, threadId, runId } = this.target;
    if (input && !this.hasBegun && !this.cancel.aborted) return { input };
    return { attach: { threadId, runId, after: this.cursor } };
  }

  /** Wait before the next attempt, or throw the error that ends the run. */
  private async recover(error: unknown): Promise<void> {
    if (!this.isTemporary(error)) {
      if (!this.isUnknown(error)) throw error;
      this.hasEnded = true;
      return;
    }
    if (this.hasBegun && this.cursor === 0) {
      throw new ConnectionLostError("The connection dropped, and the server does not number its events.", 1, error);
    }
    await this.backoff.pause(error, [this.cancel, this.stopping.signal]);
    if (!this.isUnsent) this.stopping.signal.throwIfAborted();
  }

  /** True for a drop, and after one for a refusal that says so, such as SHUTTING_DOWN. A first refusal is final. */
  private isTemporary(error: unknown): boolean {
    if (error instanceof ConnectionDropped) return true;
    if (!(error instanceof RunRefusedError) || error.code === "THREAD_BUSY") return false;
    return error.retryable && (this.hasBegun || this.backoff.isRetrying);
  }

  /** True if the input of a cancelled run has not arrived at the server. */
  private isUnknown(error: unknown): boolean {
    const isNotFound = error instanceof RunRefusedError && error.code === "RUN_NOT_FOUND";
    return isNotFound && this.cancel.aborted && !this.hasBegun && this.target.input !== undefined;
  }

  /** On a cancel, end a run that was not sent yet, and bound the wait for the end of any other. */
  private limitCancel(): () => void {
    const { cancelTimeoutMs = 5_000 } = this.options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const removeListener = onAbort(this.cancel, () => {
      if (this.isUnsent) {
        this.stop();
        return;
      }
      const expire = () => this.stop(new CancelTimeoutError(this.target.runId, cancelTimeoutMs));
      timer = setTimeout(expire, cancelTimeoutMs);
    });
    return () => {
      removeListener();
      clearTimeout(timer);
    };
  }
}
