/** Join neighbouring deltas of one message, so that a burst of thousands costs as much as one. */

import { type BaseEvent, EventType } from "@ag-ui/core";

const TARGETS: Partial<Record<string, "messageId" | "toolCallId">> = {
  [EventType.TEXT_MESSAGE_CONTENT]: "messageId",
  [EventType.REASONING_MESSAGE_CONTENT]: "messageId",
  [EventType.TOOL_CALL_ARGS]: "toolCallId",
};

/** Append an event to a queue, or to its last delta. */
export function enqueue(queue: BaseEvent[], event: BaseEvent): void {
  const target = TARGETS[event.type];
  const last = queue.at(-1);
  if (target !== undefined && last?.type === event.type && last[target] === event[target]) {
    queue[queue.length - 1] = { ...last, delta: `${last.delta}${event.delta}` };
  } else {
    queue.push(event);
  }
}
