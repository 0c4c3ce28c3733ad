/**
 * The reducer of the chat: state and one AG-UI event give the next state.
 *
 * Rule: functions here are pure. The time is an argument, and an event that does not fit the state is ignored.
 */

import { type BaseEvent, type Event, EventType, type Message, type ToolMessage } from "@ag-ui/core";
import { immutableJSONPatch, type JSONPatchDocument } from "immutable-json-patch";
import { changedPaths } from "./changes";
import { reduceCustom } from "./custom";
import * as fold from "./messages";
import { withWaiting } from "./questions";
import type { CallPhase, CallState, ChatState, Lane, RunEnding } from "./types";

/** Apply an event at a time in milliseconds. */
export function reduce(state: ChatState, received: BaseEvent, now: number): ChatState {
  const event = received as unknown as Event;
  switch (event.type) {
    case EventType.RUN_STARTED:
      return {
        ...state,
        run: { id: event.runId, status: "running", startedAt: startedAt(state, event.runId) ?? now },
        interrupts: [],
        pendingCalls: [],
        steps: [],
        unsent: fold.refused(state.unsent),
      };
    case EventType.RUN_FINISHED:
      return finishRun(state, event, now);
    case EventType.RUN_ERROR: {
      return endRun(closeMessages(state, now), now, { status: "failed", failure: failureOf(event) });
    }
    case EventType.TEXT_MESSAGE_START:
      return startMessage(state, event.messageId, { role: event.role ?? "assistant", ...named(event) }, event, now);
    case EventType.REASONING_MESSAGE_START:
      return startMessage(state, event.messageId, { role: "reasoning" }, event, now);
    case EventType.TEXT_MESSAGE_CONTENT:
    case EventType.REASONING_MESSAGE_CONTENT:
      return { ...state, messages: fold.appendText(state.messages, event.messageId, event.delta) };
    case EventType.TEXT_MESSAGE_END:
    case EventType.REASONING_MESSAGE_END:
      return endMessage(state, event.messageId, now);
    case EventType.TOOL_CALL_START: {
      const call = {
        id: event.toolCallId,
        type: "function" as const,
        function: { name: event.toolCallName, arguments: "" },
      };
      const parent = event.parentMessageId ?? event.toolCallId;
      const messages = fold.addCall(state.messages, call, parent, event.subagentRunId);
      const next = withCall(state, event.toolCallId, { phase: "streaming", startedAt: now });
      return { ...next, messages, runs: madeBy(state, parent) };
    }
    case EventType.TOOL_CALL_ARGS:
      return { ...state, messages: fold.appendArguments(state.messages, event.toolCallId, event.delta) };
    case EventType.TOOL_CALL_END:
      return withCall(state, event.toolCallId, { ...state.calls[event.toolCallId], phase: "running", startedAt: now });
    case EventType.TOOL_CALL_RESULT:
      return finishCall(state, event, now);
    case EventType.STATE_SNAPSHOT: {
      const changed = state.shared.value === undefined ? [] : changedPaths(state.shared.value, event.snapshot);
      return { ...state, shared: { value: event.snapshot, changed } };
    }
    case EventType.STATE_DELTA:
      return patchState(state, event.delta);
    case EventType.MESSAGES_SNAPSHOT:
      return { ...state, messages: event.messages, open: {}, earlier: undefined };
    case EventType.ACTIVITY_SNAPSHOT:
      return showActivity(state, event);
    case EventType.ACTIVITY_DELTA: {
      const messages = fold.update(state.messages, event.messageId, (message) =>
        message.role === "activity"
          ? { ...message, content: patched(message.content, event.patch) as Record<string, unknown> }
          : message,
      );
      return { ...state, messages };
    }
    case EventType.STEP_STARTED:
      return {
        ...state,
        steps: [...state.steps, { name: event.stepName, status: "running", ...attributed(event) }],
      };
    case EventType.STEP_FINISHED: {
      const index = state.steps.findLastIndex((step) => step.name === event.stepName && step.status === "running");
      if (index < 0) return state;
      return { ...state, steps: state.steps.with(index, { ...state.steps[index]!, status: "finished" }) };
    }
    case EventType.SUBAGENT_STARTED:
      return startLane(state, event);
    case EventType.SUBAGENT_FINISHED: {
      const status = event.outcome?.type === "suspended" ? "suspended" : "finished";
      return withLane(state, event.subagentRunId, { status });
    }
    case EventType.SUBAGENT_ERROR:
      return withLane(state, event.subagentRunId, { status: "failed", error: event.message });
    case EventType.REASONING_ENCRYPTED_VALUE:
      return {
        ...state,
        messages: fold.update(state.messages, event.entityId, (message) => ({
          ...message,
          encryptedValue: event.encryptedValue,
        })),
      };
    case EventType.CUSTOM:
      return reduceCustom(state, event.name, event.value, event.subagentRunId);
    default:
      return state;
  }
}

/** Describe RUN_ERROR, as it arrives or as it is stored with a run. */
export function failureOf({ code, message, metadata }: Pick<Of<EventType.RUN_ERROR>, "code" | "message" | "metadata">) {
  const { retryable, requestId } = metadata ?? {};
  return {
    code: code ?? "ERROR",
    message,
    retryable: retryable === true,
    ...(typeof requestId === "string" ? { requestId } : {}),
  };
}

/** End the run without a complete answer. */
export function endRun(state: ChatState, now: number, { ...ending }: RunEnding): ChatState {
  if (state.run.id !== undefined && state.run.id === state.stoppedRunId) ending.isByUser = true;
  const endings = state.run.id === undefined ? state.endings : { ...state.endings, [state.run.id]: ending };
  return { ...state, endings, run: { ...state.run, ...ending, endedAt: now } };
}

/** Time at which the page started this run, or undefined for a run of another client. */
function startedAt({ run }: ChatState, runId: string): number | undefined {
  return run.id === runId ? run.startedAt : undefined;
}

type Of<T extends EventType> = Extract<Event, { type: T }>;

function named(event: { name?: string }): { name?: string } {
  return event.name === undefined ? {} : { name: event.name };
}

function attributed(event: { subagentRunId?: string }): { subagentRunId?: string } {
  return event.subagentRunId === undefined ? {} : { subagentRunId: event.subagentRunId };
}

function madeBy(state: ChatState, messageId: string): ChatState["runs"] {
  return state.run.id === undefined ? state.runs : { ...state.runs, [messageId]: state.run.id };
}

function startMessage(
  state: ChatState,
  id: string,
  head: { role: string; name?: string },
  event: { subagentRunId?: string },
  now: number,
): ChatState {
  const known = fold.find(state.messages, id);
  const message = { content: "", ...known, id, ...head, ...attributed(event) } as Message;
  return {
    ...state,
    messages: fold.put(state.messages, message),
    open: { ...state.open, [id]: true },
    times: { ...state.times, [id]: { start: now } },
    runs: madeBy(state, id),
  };
}

function endMessage(state: ChatState, id: string, now: number): ChatState {
  const { [id]: _, ...open } = state.open;
  const start = state.times[id]?.start ?? now;
  return { ...state, open, times: { ...state.times, [id]: { start, end: now } } };
}

function withCall(state: ChatState, id: string, call: CallState): ChatState {
  return { ...state, calls: { ...state.calls, [id]: call } };
}

function finishCall(state: ChatState, event: Of<EventType.TOOL_CALL_RESULT>, now: number): ChatState {
  const { metadata } = event;
  const measured = metadata?.durationMs;
  const startedAt = state.calls[event.toolCallId]?.startedAt;
  const duration = typeof measured === "number" ? measured : startedAt === undefined ? undefined : now - startedAt;
  const message = {
    id: event.messageId,
    role: "tool" as const,
    toolCallId: event.toolCallId,
    content: event.content,
    ...attributed(event),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const phase = phaseOf(message);
  return {
    ...withCall(state, event.toolCallId, { phase, ...(duration === undefined ? {} : { duration }) }),
    messages: fold.put(state.messages, message),
    runs: madeBy(state, event.messageId),
  };
}

/** The state of a call that was read from a stored thread. */
export function callStateOf(result: ToolMessage | undefined): CallState {
  if (result === undefined) return { phase: "running" };
  const duration = result.metadata?.durationMs;
  return { phase: phaseOf(result), ...(typeof duration === "number" ? { duration } : {}) };
}

/** The phase of a call that has a result. */
function phaseOf({ metadata, error }: Pick<ToolMessage, "metadata" | "error">): CallPhase {
  const decision = metadata?.decision as { approved?: unknown } | undefined;
  if (metadata?.denied === true || decision?.approved === false) return "denied";
  return metadata?.failed === true || error !== undefined ? "failed" : "done";
}

function patched(document: unknown, patch: unknown): unknown {
  try {
    return immutableJSONPatch(document, patch as JSONPatchDocument);
  } catch (error) {
    console.warn("A patch that does not apply was skipped.", error);
    return document;
  }
}

function patchState(state: ChatState, delta: readonly { path: string }[]): ChatState {
  const value = patched(state.shared.value ?? {}, delta);
  if (value === state.shared.value) return state;
  return { ...state, shared: { value, changed: delta.map(({ path }) => path) } };
}

function showActivity(state: ChatState, event: Of<EventType.ACTIVITY_SNAPSHOT>): ChatState {
  if (event.replace === false && fold.find(state.messages, event.messageId)) return state;
  const message: Message = {
    id: event.messageId,
    role: "activity",
    activityType: event.activityType,
    content: event.content,
    ...attributed(event),
  };
  return { ...state, messages: fold.put(state.messages, message), runs: madeBy(state, event.messageId) };
}

function startLane(state: ChatState, event: Of<EventType.SUBAGENT_STARTED>): ChatState {
  const lane: Lane = { id: event.subagentRunId, name: event.name, status: "running" };
  if (event.description !== undefined) lane.description = event.description;
  if (event.parentToolCallId !== undefined) lane.parentToolCallId = event.parentToolCallId;
  if (event.parentSubagentRunId !== undefined) lane.parentId = event.parentSubagentRunId;
  return { ...state, lanes: { ...state.lanes, [lane.id]: { ...state.lanes[lane.id], ...lane } } };
}

function withLane(state: ChatState, id: string, change: Partial<Lane>): ChatState {
  const lane = state.lanes[id];
  return lane === undefined ? state : { ...state, lanes: { ...state.lanes, [id]: { ...lane, ...change } } };
}

function finishRun(state: ChatState, event: Of<EventType.RUN_FINISHED>, now: number): ChatState {
  const outcome = event.outcome ?? { type: "success" };
  const ended = { ...closeMessages(state, now), usage: [...state.usage, ...(event.usage ?? [])] };
  const run = { ...state.run, endedAt: now };
  if (outcome.type === "interrupt") {
    return withWaiting({ ...ended, run: { ...run, status: "interrupted" } }, outcome.interrupts);
  }
  if (outcome.type === "cancelled") return endRun(ended, now, { status: "cancelled" });
  const pendingCalls = outcome.pendingToolCallIds ?? [];
  return { ...ended, run: { ...run, status: "finished" }, pendingCalls, answers: [] };
}

/** Close open messages at the end of a run. */
function closeMessages(state: ChatState, now: number): ChatState {
  const ends = Object.keys(state.open).map((id) => [id, { start: state.times[id]?.start ?? now, end: now }] as const);
  return { ...state, open: {}, times: { ...state.times, ...Object.fromEntries(ends) } };
}
