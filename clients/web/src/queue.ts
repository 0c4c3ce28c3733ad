/** A queue of events until the next frame of the screen, so that the page renders once for all events of a frame. */

import type { BaseEvent } from "@ag-ui/core";
import { enqueue } from "./state/coalesce";

const HIDDEN_MS = 200;
const BUDGET_MS = 12;

export class EventQueue {
  private waiting: BaseEvent[] = [];
  private cancel: (() => void) | null = null;

  constructor(private readonly apply: (events: BaseEvent[]) => void) {}

  push(event: BaseEvent): void {
    enqueue(this.waiting, event);
    this.cancel ??= onNextFrame(() => {
      this.cancel = null;
      this.take();
    });
  }

  /** Apply everything now. */
  flush(): void {
    this.cancel?.();
    this.cancel = null;
    if (this.waiting.length > 0) this.apply(this.waiting.splice(0));
  }

  /** Drop the events that are not applied yet. */
  clear(): void {
    this.waiting = [];
  }

  /** Apply as many events as fit a frame. */
  private take(): void {
    const until = performance.now() + BUDGET_MS;
    do this.apply(this.waiting.splice(0, 200));
    while (this.waiting.length > 0 && performance.now() < until);
    if (this.waiting.length > 0) {
      this.cancel ??= onNextFrame(() => {
        this.cancel = null;
        this.take();
      });
    }
  }
}

/** Call back at the next frame. A page in the background has no frames, so it uses a timer. */
function onNextFrame(callback: () => void): () => void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    cancel();
    callback();
  };
  const frame = requestAnimationFrame(once);
  const timer = setTimeout(once, HIDDEN_MS);
  const cancel = () => {
    done = true;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
  return cancel;
}
