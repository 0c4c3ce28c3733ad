/** The thread that is shown: begin, open, load earlier messages, load again, fork. */

import type { RunAgentInput } from "@ag-ui/core";
import { chat, failureOf, follow, isFollowing, isLoaded, leave, problem, retry, sendEarly, visit } from "./chat";
import { newId } from "./config";
import { api, RequestError, type StoredThread, threadWithRuns } from "./connection/api";
import { closeReplay } from "./replay";
import { rootOf } from "./state/branches";
import { chatOf, noticesIn } from "./state/stored";
import { emptyChat } from "./state/types";
import { feedback, threads } from "./threads";

export function newThread(): void {
  closeReplay();
  leave();
  chat.set(emptyChat(newId()));
  threads.select(null);
}

/** Show a thread of the list. The one that is shown already keeps a message that was refused. */
export async function selectThread(threadId: string): Promise<void> {
  if (threadId !== threads.selected.value || !isLoaded.value) return openThread(threadId);
  closeReplay();
  await refreshThread();
}

/** Load and show a stored thread, and follow its open run. */
export async function openThread(threadId: string): Promise<void> {
  closeReplay();
  leave();
  threads.select(threadId);
  isLoaded.set(false);
  const isCurrent = visit();
  try {
    const [stored, runs] = await threadWithRuns(threadId);
    if (!isCurrent()) return;
    isLoaded.set(true);
    show(stored);
    chat.set(chatOf(stored, runs));
    const isListed = threads.list.value.some((each) => each.threadId === stored.forkedFrom?.threadId);
    if (rootOf(threadId) !== threadId && !isListed) void threads.all(); // to find the other versions of its messages
    if (stored.activeRunId !== undefined) void attach(threadId, stored.activeRunId);
    sendEarly();
  } catch (error) {
    if (!isCurrent()) return;
    chat.set(emptyChat(threadId));
    const hasNotBegun = error instanceof RequestError && error.code === "THREAD_NOT_FOUND";
    isLoaded.set(hasNotBegun);
    if (hasNotBegun) sendEarly();
    else problem.set(failureOf(error));
  }
}

function show(stored: StoredThread): void {
  feedback.set(Object.fromEntries(stored.feedback.map((rating) => [rating.messageId, rating])));
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

/** Load the messages before those that are shown. Rejects if they cannot be loaded. */
export async function loadEarlier(): Promise<void> {
  const { threadId, earlier } = chat.value;
  if (earlier === undefined) return;
  const page = await api.thread(threadId, earlier);
  chat.update((state) =>
    state.threadId !== threadId || state.earlier !== earlier
      ? state
      : {
          ...state,
          messages: [...page.messages, ...state.messages],
          runs: { ...page.runs, ...state.runs },
          notices: [...noticesIn(page), ...state.notices],
          earlier: page.before,
        },
  );
}

/** Load the shown thread again if another tab has continued it. Messages that the server does not have stay at the end. */
export async function refreshThread(): Promise<void> {
  const { threadId } = chat.value;
  if (isFollowing() || threadId !== threads.selected.value) return;
  const isCurrent = visit();
  const stored = await api.thread(threadId).catch(() => null);
  if (stored === null || !isCurrent()) return;
  const { messages, unsent, run } = chat.value;
  const known = new Set(messages.map(({ id }) => id));
  const isBehind = stored.activeRunId !== undefined || stored.messages.some(({ id }) => !known.has(id));
  if (!isBehind) return;
  const rest = messages.filter(({ id }) => unsent[id] !== undefined);
  if (rest.length === 0) return openThread(threadId);
  show(stored);
  chat.set({ ...chatOf(stored, []), messages: [...stored.messages, ...rest], unsent, run });
}

/** Run again after a failure, on top of what another tab has added meanwhile. */
export async function tryAgain(): Promise<void> {
  const { run } = chat.value;
  await refreshThread();
  if (chat.value.run === run) await retry();
}

/** Continue in a new thread from a message. */
export async function fork(messageId: string): Promise<void> {
  const isCurrent = visit();
  try {
    const { threadId } = await api.fork(chat.value.threadId, messageId);
    await threads.refresh();
    if (isCurrent()) await openThread(threadId);
  } catch (error) {
    if (isCurrent()) problem.set(failureOf(error));
  }
}
