/**
 * Actions of a user on the chat: send, stop, retry, edit, answer, fork, load.
 *
 * Rule: the chat store is changed only here, and events change it only through the reducer.
 */

import {
  type BaseEvent,
  type ContentPart,
  EventType,
  type Interrupt,
  type Message,
  type ResumeEntry,
  type RunAgentInput,
  type ToolMessage,
} from "@ag-ui/core";
import type { RunRefusedError } from "@agui-container/client";
import { isClientTool, tools } from "./client-tools";
import { newId } from "./config";
import { api, RequestError, type StoredThread } from "./connection/api";
import { FrameLog } from "./connection/frames";
import { type LinkState, type RunHandle, Transport } from "./connection/transport";
import { EventQueue } from "./queue";
import { closeReplay } from "./replay";
import { continued, openCalls, textOf, unsent } from "./state/messages";
import { reduce } from "./state/reducer";
import { type ChatState, emptyChat, type RunFailure } from "./state/types";
import { Store } from "./store";
import { feedback, threads } from "./threads";

export const frames = new FrameLog();
export const transport = new Transport(frames);
export const chat = new Store<ChatState>(emptyChat(newId()));
export const link = new Store<LinkState>("idle");
/** A sentence about the last thing that failed outside of a run; empty when there is none. */
export const problem = new Store("");
/** False until the thread that the address names is loaded. No message is written there before. */
export const isLoaded = new Store(true);
/** The last input that was sent on the thread that is shown, for `copy as curl`. */
export const lastInput = new Store<RunAgentInput | null>(null);

let active: RunHandle | null = null;
/** Number of times that another thread was opened or a run was followed. What was asked for before is not shown. */
let visits = 0;
let answers: ResumeEntry[] = [];
/** Answers to interrupts that the server has refused for now. They are sent again with the next try. */
let refusedAnswers: ResumeEntry[] = [];

const queue = new EventQueue((events: BaseEvent[]) => {
  const now = Date.now();
  chat.update((state) => events.reduce((next, event) => reduce(next, event, now), state));
});

export function isRunning(state: ChatState = chat.value): boolean {
  return state.run.status === "running";
}

// --- runs --------------------------------------------------------------------------------------------------------

interface RunOptions {
  resume?: ResumeEntry[];
  forwardedProps?: Record<string, unknown>;
}

/** Run the agent on the messages as they are. */
async function run(messages: readonly Message[], options: RunOptions = {}): Promise<void> {
  const { threadId, shared } = chat.value;
  const input: RunAgentInput = {
    threadId,
    runId: newId(),
    protocolVersion: "1.0",
    messages: [...messages],
    state: shared.value ?? null,
    tools,
    context: [],
    forwardedProps: options.forwardedProps ?? {},
    ...(options.resume === undefined ? {} : { resume: options.resume }),
  } as RunAgentInput;
  lastInput.set(input);
  refusedAnswers = [];
  if (threads.selected.value !== threadId) threads.select(threadId);
  const first = messages.find((message) => message.role === "user");
  if (first !== undefined) threads.setBeginning(threadId, textOf(first));
  if (messages.length > 0) chat.patch({ messages });
  chat.patch({ run: { id: input.runId, status: "running", startedAt: Date.now() }, interrupts: [] });
  await follow(input);
}

/** Read a run to its end. */
async function follow(input: RunAgentInput): Promise<void> {
  visits += 1;
  problem.set("");
  isLoaded.set(true);
  active?.detach();
  queue.clear();
  let hasStarted = false;
  const handle = transport.run(input, {
    onEvent: (event) => {
      if (handle !== active) return;
      queue.push(event);
      if (event.type !== EventType.RUN_STARTED) return;
      hasStarted = true;
      void threads.refresh(); // a new thread is listed from here on
    },
    onLink: (state) => link.set(state),
  });
  active = handle;
  try {
    await handle.done;
    if (handle !== active) return;
    queue.flush();
    endStopped();
  } catch (error) {
    if (handle !== active) return;
    queue.flush();
    failRun(error);
  }
  if (handle !== active) return;
  active = null;
  answers = [];
  if (!hasStarted && chat.value.run.failure?.retryable) refusedAnswers = input.resume ?? [];
  void threads.refresh();
}

/** Show a run as stopped if it has no last event. It was then stopped before the server admitted it. */
function endStopped(): void {
  if (!isRunning()) return;
  chat.update((state) => ({ ...state, run: { ...state.run, status: "cancelled", endedAt: Date.now() } }));
}

function failRun(error: unknown): void {
  if (!isRunning()) return;
  const failure = failureOf(error);
  chat.update((state) => ({ ...state, open: {}, run: { ...state.run, status: "failed", failure } }));
}

/** Sentences for errors of the agents whose own messages are for developers, by their names. */
const SENTENCES: Record<string, string> = {
  ConnectionLostError: "The server cannot be reached.",
  CancelTimeoutError: "The server did not answer that the run was stopped. The run may still be open there.",
};

/** Describe an error. A refusal keeps the server's code, and every other error counts as one of the connection. */
function failureOf(error: unknown): RunFailure {
  const { name, message, code, retryable } = error as Partial<RunRefusedError>;
  return typeof code === "string"
    ? { code, message: message ?? "", retryable: retryable === true }
    : {
        code: "CONNECTION",
        message: SENTENCES[name ?? ""] ?? (message || "The connection was lost."),
        retryable: true,
      };
}

/** Send a message, or replace everything from an earlier one on. */
export async function send(content: string | ContentPart[], instead?: string): Promise<void> {
  const { messages } = chat.value;
  const at = instead === undefined ? -1 : messages.findIndex(({ id }) => id === instead);
  const before = at < 0 ? messages : messages.slice(0, at);
  if (instead !== undefined) chat.patch({ notices: [], steps: [] });
  await run([...before, { id: instead ?? newId(), role: "user", content }]);
}

/** Ask again for the answer to the last user message, or to the one before this message. */
export async function retry(messageId?: string): Promise<void> {
  const { messages } = chat.value;
  if (messageId === undefined && refusedAnswers.length > 0) return run(messages, { resume: refusedAnswers });
  const end = messageId === undefined ? messages.length : messages.findIndex(({ id }) => id === messageId);
  const last = messages.slice(0, end).findLastIndex(({ role }) => role === "user");
  if (last >= 0) await run(messages.slice(0, last + 1));
}

/** Cancel the run at the server. The text that has arrived stays. */
export function stop(): void {
  active?.cancel();
}

// --- answers -------------------------------------------------------------------------------------------------------

/** Answer one interrupt. The next run begins when all have an answer. */
export async function answer(interrupt: Interrupt, entry: Omit<ResumeEntry, "interruptId">): Promise<void> {
  answers = [
    ...answers.filter(({ interruptId }) => interruptId !== interrupt.id),
    { interruptId: interrupt.id, ...entry },
  ];
  const rest = chat.value.interrupts.filter(({ id }) => id !== interrupt.id);
  chat.update((state) => ({
    ...state,
    interrupts: rest,
    calls:
      interrupt.toolCallId === undefined
        ? state.calls
        : { ...state.calls, [interrupt.toolCallId]: { phase: "running", startedAt: Date.now() } },
  }));
  if (rest.length > 0) return;
  const resume = answers;
  answers = [];
  await run(chat.value.messages, { resume });
}

/** Give the result of one call of this page's tools. The next run begins when all have one. */
export async function answerCall(toolCallId: string, content: string, error?: string): Promise<void> {
  const message: ToolMessage = { id: newId(), role: "tool", toolCallId, content, ...(error ? { error } : {}) };
  chat.update((state) => ({
    ...state,
    messages: [...state.messages, message],
    pendingCalls: state.pendingCalls.filter((id) => id !== toolCallId),
    calls: { ...state.calls, [toolCallId]: { phase: error ? "failed" : "done" } },
  }));
  const { interrupts, messages } = chat.value;
  const open = openCalls(messages).filter((call) => isClientTool(call.function.name));
  if (interrupts.length === 0 && open.length === 0) await run(messages);
}

// --- threads -------------------------------------------------------------------------------------------------------

export function newThread(): void {
  leave();
  chat.set(emptyChat(newId()));
  threads.select(null);
}

/** Stop reading the thread that is shown. Its run continues at the server. */
function leave(): void {
  visits += 1;
  closeReplay();
  if (active !== null) void threads.refresh();
  active?.detach();
  active = null;
  queue.clear();
  answers = [];
  refusedAnswers = [];
  lastInput.set(null);
  problem.set("");
  isLoaded.set(true);
  link.set("idle");
}

/** Show a thread of the list. The one that is shown already keeps a message that was refused. */
export async function selectThread(threadId: string): Promise<void> {
  if (threadId !== threads.selected.value || !isLoaded.value) return openThread(threadId);
  closeReplay();
  await refreshThread();
}

/** Load and show a stored thread, and follow its open run. */
export async function openThread(threadId: string): Promise<void> {
  leave();
  threads.select(threadId);
  isLoaded.set(false);
  const visit = visits;
  let stored: StoredThread;
  try {
    stored = await api.thread(threadId);
  } catch (error) {
    if (visit !== visits) return;
    chat.set(emptyChat(threadId));
    const hasNotBegun = error instanceof RequestError && error.code === "THREAD_NOT_FOUND";
    isLoaded.set(hasNotBegun);
    if (!hasNotBegun) problem.set(error instanceof Error ? error.message : String(error));
    return;
  }
  if (visit !== visits) return;
  isLoaded.set(true);
  chat.set(emptyChat(threadId));
  show(stored, stored.messages);
  const asks = stored.waiting.length > 0;
  if (stored.activeRunId !== undefined) await attach(threadId, stored.activeRunId);
  else if (asks) await run([]);
  else restoreCalls(stored);
}

function show(stored: StoredThread, messages: readonly Message[]): void {
  feedback.set(Object.fromEntries(stored.feedback.map((rating) => [rating.messageId, rating])));
  chat.patch({
    messages,
    runs: stored.runs,
    shared: { value: stored.state, changed: [] },
    goals: latestGoals(stored),
  });
}

/**
 * Load the shown thread again if another tab has continued it.
 *
 * The next run sends the whole conversation, and an old copy would remove the other tab's messages. Messages of a run
 * that was refused stay at the end, with the failure, because the server does not have them.
 */
export async function refreshThread(): Promise<void> {
  const { threadId } = chat.value;
  if (active !== null || threadId !== threads.selected.value) return;
  const visit = visits;
  const stored = await api.thread(threadId).catch(() => null);
  if (stored === null || visit !== visits) return;
  const known = new Set(chat.value.messages.map(({ id }) => id));
  const isBehind = stored.activeRunId !== undefined || stored.messages.some(({ id }) => !known.has(id));
  if (!isBehind) return;
  const { messages, run } = chat.value;
  const rest = run.status === "failed" ? unsent(messages, stored.messages) : [];
  if (rest.length > 0) show(stored, continued(stored.messages, rest));
  else await openThread(threadId);
}

/** Run again after a failure, on top of what another tab has added meanwhile. */
export async function tryAgain(): Promise<void> {
  const { run } = chat.value;
  await refreshThread();
  if (chat.value.run === run) await retry();
}

function latestGoals(stored: StoredThread): ChatState["goals"] {
  const runId = stored.goals.at(-1)?.runId;
  return stored.goals.filter((goal) => goal.runId === runId).map(({ type, status, data }) => ({ type, status, data }));
}

/** Let calls of this page's tools that have no result wait for the user again. */
function restoreCalls(stored: StoredThread): void {
  if (stored.status !== "client_tool_turn") return;
  const open = openCalls(stored.messages).filter((call) => isClientTool(call.function.name));
  chat.patch({ pendingCalls: open.map(({ id }) => id) });
}

async function attach(threadId: string, runId: string): Promise<void> {
  chat.patch({ run: { id: runId, status: "running", startedAt: Date.now() } });
  await follow({
    threadId,
    runId,
    protocolVersion: "1.0",
    messages: [],
    state: null,
    tools: [],
    context: [],
    forwardedProps: { command: { type: "attach", runId } },
  } as RunAgentInput);
}

/** Continue in a new thread from a message. */
export async function fork(messageId: string): Promise<void> {
  const visit = visits;
  try {
    const { threadId } = await api.fork(chat.value.threadId, messageId);
    await threads.refresh();
    if (visit === visits) await openThread(threadId);
  } catch (error) {
    if (visit === visits) problem.set(error instanceof Error ? error.message : String(error));
  }
}
