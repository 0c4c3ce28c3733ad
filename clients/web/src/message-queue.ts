/**
 * Messages that were written while a run was open. The first is sent when the run has ended well.
 *
 * They stay with their conversation: another thread does not show them, and a reload of the tab does not lose them.
 */

import type { ContentPart } from "@ag-ui/core";
import { read, write } from "./config";
import { rootOf } from "./state/branches";
import { Store } from "./store";

export type Content = string | ContentPart[];

const KEY = "agui.queued";
const NONE: readonly Content[] = [];

/** Messages by the id of their conversation. */
export const queues = new Store<Readonly<Record<string, readonly Content[]>>>(
  JSON.parse(read(KEY, "sessionStorage") ?? "{}"),
);

export function queueOf(threadId: string): readonly Content[] {
  return queues.value[rootOf(threadId)] ?? NONE;
}

export function setQueue(threadId: string, messages: readonly Content[]): void {
  const { [rootOf(threadId)]: _, ...others } = queues.value;
  queues.set(messages.length === 0 ? others : { ...others, [rootOf(threadId)]: messages });
  write(KEY, JSON.stringify(queues.value), "sessionStorage");
}
