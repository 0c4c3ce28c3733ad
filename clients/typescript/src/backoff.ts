/** Pauses between attempts to connect. They double and vary at random, and after a limit the run fails. */

import { ConnectionLostError } from "./errors.js";

/** A failed attempt to connect, before the next one. */
export interface Reconnect {
  /** Failed connections in a row, from 1. */
  attempt: number;
  /** Milliseconds until the next attempt. */
  delayMs: number;
  cause: unknown;
}

/** Default of the longest first pause. */
export const INITIAL_DELAY_MS = 250;

export interface BackoffOptions {
  /** Longest first pause. Default 250. */
  initialDelayMs?: number;
  /** Longest pause. Default 5,000. */
  maxDelayMs?: number;
  /** Time without any progress after which a run fails with `ConnectionLostError`. Default 60,000. */
  giveUpAfterMs?: number;
  /** Called before each pause, for example to show that the page reconnects. */
  onReconnect?: (reconnect: Reconnect) => void;
}

export class Backoff {
  private attempts = 0;
  private failingSince = 0;

  constructor(private readonly options: BackoffOptions) {}

  /** True if a connection has failed and no connection has made progress since. */
  get isRetrying(): boolean {
    return this.attempts > 0;
  }

  /** Begin with the first pause again, because a connection made progress. */
  reset(): void {
    this.attempts = 0;
  }

  /**
   * Wait before the next attempt. An abort of `wake` ends the pause.
   *
   * @throws ConnectionLostError if the last progress is too long ago.
   */
  async pause(cause: unknown, wake: readonly AbortSignal[]): Promise<void> {
    const { initialDelayMs = INITIAL_DELAY_MS, maxDelayMs = 5_000, giveUpAfterMs = 60_000, onReconnect } = this.options;
    this.attempts += 1;
    if (this.attempts === 1) this.failingSince = Date.now();
    if (Date.now() - this.failingSince >= giveUpAfterMs) {
      throw new ConnectionLostError(`No connection for ${giveUpAfterMs} ms.`, this.attempts, cause);
    }
    const longest = Math.min(maxDelayMs, initialDelayMs * 2 ** (this.attempts - 1));
    // Half of the pause is fixed, so that clients of a server that restarts do not all connect at the same moment.
    const delayMs = Math.round(longest * (0.5 + Math.random() / 2));
    onReconnect?.({ attempt: this.attempts, delayMs, cause });
    await sleep(delayMs, wake);
  }
}

/** Call `listener` on abort, or now if the signal is aborted already. Return a function that removes the listener. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** Wait, or until one of the signals is aborted. */
export function sleep(delayMs: number, wake: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of wake) signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    // A signal that is aborted already does not end the pause, because a cancelled run would then retry at once.
    for (const signal of wake) signal.addEventListener("abort", end);
  });
}
