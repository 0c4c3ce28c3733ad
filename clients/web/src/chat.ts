/**
 * Runs of the thread that is shown: send, stop, ask again, answer.
 *
 * Rules: only what the server does not have is sent, because the server keeps the thread. The chat store is changed only
 * here and in `thread.ts`, and events change it only through the reducer.
 */

import {
  type BaseEvent,
  EventType,
  type Interrupt,
  type Message,
  type ResumeEntry,
  type RunAgentInput,
  type ToolMessage,
  type UserMessage,
} from "@ag-ui/core";
import type { RunRefusedError } from "@agui-container/client";
import { isClientTool, tools } from "./client-tools";
import { newId } from "./config";
import { api, threadWithRuns } from "./connection/api";
import { FrameLog } from "./connection/frames";
import { type LinkState, type RunHandle, Transport } from "./connection/transport";
import { type Content, enqueue, queueOf, setQueue } from "./message-queue";
import { EventQueue } from "./queue";
import { choices } from "./server";
import { branchAt, branchId } from "./state/branches";
import { openCalls, unsent } from "./state/messages";
import { answered, isApproval, putOff, sent, withWaiting } from "./state/questions";
import { endRun, reduce } from "./state/reducer";
import { chatOf, withLateAnswers } from "./state/stored";
import { type ChatState, emptyChat, type RunFailure } from "./state/types";
import { Store } from "./store";
import { threads } from "./threads";

export const frames = new FrameLog();
export const transport = new Transport(frames);
export const chat = new Store<ChatState>(emptyChat(newId()));
export const link = new Store<LinkState>("idle");
/** The last thing that failed outside of a run. */
export const problem = new Store<RunFailure | null>(null);
/** False until the thread that the address names is loaded. A message for it waits until then. */
export const isLoaded = new Store(true);
/** The last input that was sent on the thread that is shown, for `copy as curl`. */
export const lastInput = new Store<RunAgentInput | null>(null);
/** Number of runs that the user has begun, with a message or an answer. */
export const begun = new Store(0);

let active: RunHandle | null = null;
/** Who answers the thread that is shown. The agent that has asked a question gets its answer. */
let asked: Record<string, string> | null = null;
/** Number of times that another thread was opened or a run began. What was asked for before is not shown. */
let visits = 0;
/** Answers to interrupts that the server has refused for now. They are sent again with the next try. */
let refusedAnswers: ResumeEntry[] = [];

const queue = new EventQueue((events: BaseEvent[]) => {
  const now = Date.now();
  chat.update((state) => events.reduce((next, event) => reduce(next, event, now), state));
});

export function isRunning(state: ChatState = chat.value): boolean {
  return state.run.status === "running";
}

/** Return a function that is true as long as the same thread is shown and no run has begun since. */
export function visit(): () => boolean {
  const mine = visits;
  return () => mine === visits;
}

/** Return true from the beginning of a run, or of the fork before it, until its last event is shown. */
export function isFollowing(): boolean {
  return active !== null || isRunning();
}

// --- runs --------------------------------------------------------------------------------------------------------

/** Run the agent on what the server does not have yet. */
async function run(resume?: ResumeEntry[]): Promise<void> {
  const { threadId } = chat.value;
  const input = {
    threadId,
    runId: newId(),
    protocolVersion: "1.0",
    messages: unsent(chat.value),
    state: null,
    tools,
    context: [],
    forwardedProps: resume === undefined ? choices() : (asked ?? choices()),
    ...(resume === undefined ? {} : { resume }),
  } as RunAgentInput;
  lastInput.set(input);
  asked = input.forwardedProps as Record<string, string>;
  refusedAnswers = [];
  if (threads.selected.value !== threadId) threads.select(threadId);
  chat.patch({ run: { id: input.runId, status: "running", startedAt: Date.now() }, interrupts: [] });
  begun.update((count) => count + 1);
  await follow(input);
}

/** Read a run to its end. */
export async function follow(input: RunAgentInput): Promise<void> {
  visits += 1;
  problem.set(null);
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
  void threads.refresh();
  if (chat.value.run.status === "failed") afterFailure(input, hasStarted);
  if (chat.value.run.status === "finished") sendQueued();
  if (chat.value.run.status === "interrupted") void sendAnswers();
  if (input.resume === undefined) return;
  const late = decidedElsewhere(chat.value);
  if (late.length > 0) void loadAgain(input.threadId, late).catch(() => undefined);
}

/** Send the first message that waits for the end of a run. */
export function sendQueued(): void {
  const { threadId } = chat.value;
  const [first, ...rest] = queueOf(threadId);
  if (first === undefined || isRunning()) return;
  setQueue(threadId, rest);
  void send(first.content);
}

/** Send the messages that were written before the thread was shown. */
export function sendEarly(): void {
  const { threadId } = chat.value;
  const waiting = queueOf(threadId);
  setQueue(
    threadId,
    waiting.filter(({ isEarly }) => !isEarly),
  );
  for (const { content } of waiting.filter(({ isEarly }) => isEarly)) void send(content);
}

/** Show a run as stopped if it has no last event. It was then stopped before the server admitted it. */
function endStopped(): void {
  if (isRunning()) chat.update((state) => endRun(state, Date.now(), { status: "cancelled" }));
}

function failRun(error: unknown): void {
  if (!isRunning()) return;
  const ending = { status: "failed", failure: failureOf(error) } as const;
  chat.update((state) => endRun({ ...state, open: {} }, Date.now(), ending));
}

/** Keep what was refused, and let the questions wait again that the server has no answer to. */
function afterFailure({ threadId, resume }: RunAgentInput, hasStarted: boolean): void {
  const { failure } = chat.value.run;
  if (!hasStarted && failure !== undefined && !failure.retryable) {
    const { unsent } = chat.value;
    chat.patch({ unsent: Object.fromEntries(Object.keys(unsent).map((id) => [id, unsent[id] || failure.message])) });
  }
  if (resume === undefined) return;
  if (!hasStarted && failure?.retryable) refusedAnswers = resume;
  else void loadQuestions(threadId);
}

async function loadQuestions(threadId: string): Promise<void> {
  const isCurrent = visit();
  const interrupts = await api.waiting(threadId).catch(() => []);
  if (isCurrent()) chat.update((state) => withWaiting(state, interrupts));
}

/** The calls of the agent that have no result here after an answer, because they were decided in another tab. */
function decidedElsewhere({ run, calls, messages }: ChatState): string[] {
  if (run.status !== "finished") return [];
  const all = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  const open = all.filter((call) => calls[call.id]?.phase === "running" && !isClientTool(call.function.name));
  return open.map(({ id }) => id);
}

/** Show the thread as the server has it. Answers to the calls `late` came after the decision. */
async function loadAgain(threadId: string, late: readonly string[]): Promise<void> {
  const isCurrent = visit();
  const [stored, runs] = await threadWithRuns(threadId);
  if (isCurrent()) chat.set(withLateAnswers(chatOf(stored, runs), late));
}

/** Sentences for errors of the agents whose own messages are for developers, by their names. */
const SENTENCES: Record<string, string> = {
  ConnectionLostError: "The server cannot be reached.",
  CancelTimeoutError: "The server did not answer that the run was stopped. The run may still be open there.",
};

/** Describe an error. A refusal keeps the server's code, and every other error counts as one of the connection. */
export function failureOf(error: unknown): RunFailure {
  const { name, message, code, retryable, requestId } = error as Partial<RunRefusedError>;
  return typeof code === "string"
    ? { code, message: message ?? "", retryable: retryable === true, ...(requestId ? { requestId } : {}) }
    : {
        code: "CONNECTION",
        message: SENTENCES[name ?? ""] ?? (message || "The connection was lost."),
        retryable: true,
      };
}

/** The thread that a message goes to: the one that is shown, or the one that is being loaded. */
export function addressee(): string {
  return (isLoaded.value ? undefined : threads.selected.value) ?? chat.value.threadId;
}

/** Send a message, or let it wait until its thread is shown and has no open run. */
export async function send(content: Content): Promise<void> {
  if (!isLoaded.value) return enqueue(addressee(), { content, isEarly: true });
  if (isRunning()) return enqueue(chat.value.threadId, { content });
  chat.update(putOff);
  add({ id: newId(), role: "user", content });
  await run();
}

/** Add a message that the server does not have. */
function add(message: Message): void {
  chat.update((state) => ({
    ...state,
    messages: [...state.messages, message],
    unsent: { ...state.unsent, [message.id]: "" },
  }));
}

/** Replace a message of the user. What followed it stays on another branch. */
export async function edit(message: UserMessage): Promise<void> {
  const { messages, unsent } = chat.value;
  if (unsent[message.id] === undefined) return runBranch(message);
  chat.patch({ messages: messages.map((other) => (other.id === message.id ? message : other)) });
  await resend(Object.keys(unsent));
}

/** Ask for another answer than this one. It stays on another branch. */
export async function askAgain(messageId: string): Promise<void> {
  const { messages } = chat.value;
  const at = messages.findIndex(({ id }) => id === messageId);
  const asked = messages.slice(0, at).findLast((message) => message.role === "user");
  if (asked !== undefined) await runBranch(asked);
}

/** Run again after the end of a run that has no complete answer. */
export async function retry(): Promise<void> {
  const { messages, unsent } = chat.value;
  const last = messages.findLast((message) => message.role !== "reasoning" && message.role !== "activity");
  if (refusedAnswers.length > 0) await run(refusedAnswers);
  else if (Object.keys(unsent).length > 0) await resend(Object.keys(unsent));
  else if (last?.role === "user" || last?.role === "tool") await resend([last.id]);
  else if (last !== undefined) await askAgain(last.id);
}

/** Run the agent on these messages, which the server may have or not. */
async function resend(messageIds: readonly string[]): Promise<void> {
  chat.patch({ unsent: Object.fromEntries(messageIds.map((id) => [id, ""])) });
  await run();
}

/** Fork the thread at a message of the user, and run the agent on that message. */
async function runBranch(message: UserMessage): Promise<void> {
  visits += 1;
  const before = chat.value;
  chat.patch({ ...branchAt(before, message), run: { status: "running", startedAt: Date.now() } });
  const isCurrent = visit();
  try {
    const { threadId } = await api.fork(before.threadId, message.id, branchId(before.threadId, newId()));
    if (!isCurrent()) return;
    chat.patch({ threadId, unsent: { [message.id]: "" } });
  } catch (error) {
    if (!isCurrent()) return;
    chat.set(before);
    problem.set(failureOf(error));
    return;
  }
  await run();
}

/** Cancel the run at the server. The text that has arrived stays. */
export function stop(): void {
  if (active === null) return;
  chat.update((state) => (state.run.id === undefined ? state : { ...state, stoppedRunId: state.run.id }));
  active.cancel();
}

/** Stop reading the thread that is shown. Its run continues at the server. */
export function leave(): void {
  visits += 1;
  if (active !== null) void threads.refresh();
  active?.detach();
  active = null;
  queue.clear();
  refusedAnswers = [];
  lastInput.set(null);
  asked = null;
  problem.set(null);
  isLoaded.set(true);
  link.set("idle");
}

// --- answers -------------------------------------------------------------------------------------------------------

/** Answer one interrupt. The next run begins when all have an answer. */
export async function answer(interrupt: Interrupt, entry: Omit<ResumeEntry, "interruptId">): Promise<void> {
  chat.update((state) => answered(state, interrupt, entry));
  await sendAnswers();
}

/** Send the answers if every question has one. */
async function sendAnswers(): Promise<void> {
  const { answers, interrupts } = chat.value;
  if (answers.length === 0 || interrupts.length > 0) return;
  chat.update((state) => sent(state, Date.now()));
  await run([...answers]);
}

/** Approve all calls that wait for a decision. */
export function allowAll(): void {
  const payload = { approved: true };
  for (const interrupt of chat.value.interrupts.filter(isApproval))
    void answer(interrupt, { status: "resolved", payload });
}

/** Give the result of one call of this page's tools. The next run begins when all have one. */
export async function answerCall(result: Omit<ToolMessage, "id" | "role">): Promise<void> {
  const { toolCallId } = result;
  add({ id: newId(), role: "tool", ...result });
  chat.update(({ calls: { [toolCallId]: _, ...calls }, ...state }) => ({
    ...state,
    pendingCalls: state.pendingCalls.filter((id) => id !== toolCallId),
    calls,
  }));
  const { interrupts, messages } = chat.value;
  const open = openCalls(messages).filter((call) => isClientTool(call.function.name));
  if (interrupts.length === 0 && open.length === 0) await run();
}
