/** A stored run, played again event by event. The chat does not change. */

import type { BaseEvent } from "@ag-ui/core";
import { chat } from "./chat";
import { storedFrames } from "./connection/api";
import type { Frame } from "./connection/frames";
import { reduce } from "./state/reducer";
import { messagesBefore } from "./state/stored-trace";
import { type ChatState, emptyChat } from "./state/types";
import { Store } from "./store";

export interface Replay {
  runId: string;
  events: readonly BaseEvent[];
  /** The events as the event log shows them. */
  frames: readonly Frame[];
  /** Number of events that were applied. */
  at: number;
  isPlaying: boolean;
  /** The chat before the first event. */
  before: ChatState;
  state: ChatState;
}

const TICK_MS = 40;

export const replay = new Store<Replay | null>(null);
let timer: ReturnType<typeof setInterval> | undefined;
/** Number of replays that were asked for or closed. A run that is loaded after the next one is not shown. */
let requests = 0;

export async function openReplay(threadId: string, runId: string): Promise<void> {
  const request = ++requests;
  const texts = await storedFrames(threadId, runId);
  if (request !== requests) return;
  const events = texts.map((text) => JSON.parse(text) as BaseEvent);
  const frames = framesOf(events, texts, runId);
  const before = { ...emptyChat(threadId), messages: messagesBefore(runId, chat.value) };
  replay.set({ runId, events, frames, at: 0, isPlaying: false, before, state: before });
  play();
}

export function closeReplay(): void {
  requests += 1;
  clearInterval(timer);
  replay.set(null);
}

export function seek(at: number): void {
  const current = replay.value;
  if (current === null) return;
  const from = at >= current.at ? current.at : 0;
  const start = from === 0 ? current.before : current.state;
  const state = current.events.slice(from, at).reduce((next, event) => reduce(next, event, timeOf(event)), start);
  replay.set({ ...current, at, state });
}

export function play(): void {
  const current = replay.value;
  if (current === null) return;
  if (current.at >= current.events.length) seek(0);
  replay.set({ ...replay.value!, isPlaying: true });
  clearInterval(timer);
  timer = setInterval(() => {
    const now = replay.value;
    if (now === null || now.at >= now.events.length) return pause();
    // A long run is played in at most 400 steps, so that a replay does not take minutes.
    seek(Math.min(now.events.length, now.at + Math.ceil(now.events.length / 400)));
  }, TICK_MS);
}

export function pause(): void {
  clearInterval(timer);
  if (replay.value !== null) replay.set({ ...replay.value, isPlaying: false });
}

/** Events as frames. Most events have no time of their own. */
function framesOf(events: readonly BaseEvent[], texts: readonly string[], runId: string): Frame[] {
  const same = { at: 0, since: 0, runId, direction: "in" as const };
  return events.map(({ type }, index) => ({ ...same, number: index + 1, type, text: texts[index]! }));
}

function timeOf(event: BaseEvent): number {
  return typeof event.timestamp === "number" ? event.timestamp : Date.now();
}
