/**
 * Messages that wait: for the end of the open run, or until their thread is shown.
 *
 * They stay with their conversation: another thread does not show them, and a reload of the tab does not lose them.
 */

import type { ContentPart } from "@ag-ui/core";
import { read, write } from "./config";
import { rootOf } from "./state/branches";
import { Store } from "./store";

export type Content = string | ContentPart[];

export interface WaitingMessage {
  content: Content;
  /** True if the message was written before its thread was shown. It is sent when the thread is. */
  isEarly?: true;
}

const KEY = "agui.queued";
const NONE: readonly WaitingMessage[] = [];

/** Messages by the id of their conversation. */
export const queues = new Store<Readonly<Record<string, readonly WaitingMessage[]>>>(
  JSON.parse(read(KEY, "sessionStorage") ?? "{}"),
);

export function queueOf(threadId: string): readonly WaitingMessage[] {
  return queues.value[rootOf(threadId)] ?? NONE;
}

export function enqueue(threadId: string, message: WaitingMessage): void {
  setQueue(threadId, [...queueOf(threadId), message]);
}

export function setQueue(threadId: string, messages: readonly WaitingMessage[]): void {
  const { [rootOf(threadId)]: _, ...others } = queues.value;
  queues.set(messages.length === 0 ? others : { ...others, [rootOf(threadId)]: messages });
  write(KEY, JSON.stringify(queues.value), "sessionStorage");
}
