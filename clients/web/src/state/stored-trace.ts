/**
 * Turns of a stored thread, for the trace: which of the server's runs belong together, and their events as frames.
 *
 * Stored events have no times, except the first and the last one of a run, and the results of tools say how long the
 * tool took. So frames have the times that follow from these, and spans of model calls and subagents have none.
 */

import type { BaseEvent, Message } from "@ag-ui/core";
import type { RunFacts } from "../connection/api";
import { type Frame, typeOf } from "../connection/frames";
import { textOf } from "./messages";
import { isInTrace } from "./trace";
import type { ChatState } from "./types";

/** What the user asked for, and the runs that answered it, the oldest first. */
export interface StoredTurn {
  title: string;
  runs: readonly RunFacts[];
}

/** Group runs, the newest first, into turns. A run after questions belongs to the turn that has asked them. */
export function storedTurns(runs: readonly RunFacts[], chat: Pick<ChatState, "messages" | "runs">): StoredTurn[] {
  const turns: { title: string; runs: RunFacts[] }[] = [];
  for (const run of runs.toReversed()) {
    if (turns.at(-1)?.runs.at(-1)?.status === "interrupted") turns.at(-1)!.runs.push(run);
    else turns.push({ title: questionOf(run, chat), runs: [run] });
  }
  return turns;
}

/** What the user had said before a run; empty if the page does not have it. */
export function questionOf({ runId }: RunFacts, chat: Pick<ChatState, "messages" | "runs">): string {
  const asked = messagesBefore(runId, chat)[0];
  return asked?.role === "user" ? textOf(asked) || "Files" : "";
}

/** What was said before a run, from the last message of the user; empty if the page does not have it. */
export function messagesBefore(runId: string, { messages, runs }: Pick<ChatState, "messages" | "runs">): Message[] {
  const at = messages.findIndex(({ id }) => runs[id] === runId);
  const before = messages.slice(0, Math.max(0, at));
  const asked = before.findLastIndex(({ role }) => role === "user");
  return asked < 0 ? [] : before.slice(asked);
}

/** The frames of a run that a trace is made of: its beginning, and the events that the server has sent. */
export function storedFramesOf({ runId, startedAt }: RunFacts, texts: readonly string[]): Frame[] {
  let at = Math.floor(startedAt * 1000); // as the timestamps of events
  const calledAt = new Map<string, number>();
  const frame = (direction: Frame["direction"], type: string, text: string): Frame => {
    return { number: 0, since: 0, at, runId, direction, type, text };
  };
  const frames = [frame("out", "RUN_INPUT", "{}")];
  for (const text of texts) {
    const type = typeOf(text);
    if (!isInTrace(type)) continue;
    const event = JSON.parse(text) as BaseEvent & { toolCallId?: string };
    const { durationMs } = (event.metadata ?? {}) as { durationMs?: number };
    if (event.timestamp !== undefined) at = event.timestamp;
    if (type === "TOOL_CALL_END") calledAt.set(event.toolCallId!, at);
    if (durationMs !== undefined) at = Math.max(at, (calledAt.get(event.toolCallId!) ?? at) + durationMs);
    frames.push(frame("in", type, text));
  }
  return frames;
}
