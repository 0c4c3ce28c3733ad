/** Pauses between attempts to connect: they double, vary at random, and end when nothing has helped for too long. */

import { ConnectionLostError } from "./errors.js";

/** A failed connection that is about to be tried again. */
export interface Reconnect {
  /** Failed connections in a row, from 1. */
  attempt: number;
  /** Milliseconds until the next attempt. */
  delayMs: number;
  cause: unknown;
}

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

  /** A connection has failed and has made no progress since. */
  get isRetrying(): boolean {
    return this.attempts > 0;
  }

  /** Begin anew, because a connection made progress. */
  reset(): void {
    this.attempts = 0;
  }

  /**
   * Wait before the next attempt. An abort of `wake` ends the pause.
   *
   * @throws ConnectionLostError if the last progress is too long ago.
   */
  async pause(cause: unknown, wake: readonly AbortSignal[]): Promise<void> {
    const { initialDelayMs = 250, maxDelayMs = 5_000, giveUpAfterMs = 60_000, onReconnect } = this.options;
    this.attempts += 1;
    if (this.attempts === 1) this.failingSince = Date.now();
    if (Date.now() - this.failingSince >= giveUpAfterMs) {
      throw new ConnectionLostError(`No connection for ${giveUpAfterMs} ms.`, this.attempts, cause);
    }
    const longest = Math.min(maxDelayMs, initialDelayMs * 2 ** (this.attempts - 1));
    // The lower half stays, so that a server that restarts is not asked many times at once.
    const delayMs = Math.round(longest * (0.5 + Math.random() / 2));
    onReconnect?.({ attempt: this.attempts, delayMs, cause });
    await sleep(delayMs, wake);
  }
}

/** Call `listener` on abort; for a signal that is aborted already, at once. Returns what removes the listener. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

function sleep(delayMs: number, wake: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of wake) signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    // A signal that was aborted before does not shorten the pause, or a cancelled run would ask without any pause.
    for (const signal of wake) signal.addEventListener("abort", end);
  });
}
