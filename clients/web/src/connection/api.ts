/** Requests to the routes for threads, runs, feedback and capabilities. */

import type { AgentCapabilities, Interrupt, Message, ResumeEntry, RunErrorEvent } from "@ag-ui/core";
import { endpoint, SESSION_HEADER, session } from "../config";
import { authorization } from "../token";

export interface ThreadFacts {
  threadId: string;
  status: string;
  createdAt: number;
  changedAt: number;
  title?: string;
  activeRunId?: string;
  forkedFrom?: { threadId: string; messageId: string };
}

export interface Feedback {
  messageId: string;
  sentiment: "positive" | "negative";
  categories?: string[];
  notes?: string;
}

export interface StoredGoal {
  runId: string;
  type: string;
  status: "pending" | "achieved" | "failed";
  data?: unknown;
}

/** What a question of the agent was answered with, after a message. Decisions on calls are with their results. */
export interface StoredAnswer extends Pick<ResumeEntry, "interruptId" | "payload"> {
  runId: string;
  status: ResumeEntry["status"] | "unanswered";
  messageId?: string;
  reason: string;
  message?: string;
}

/** A CUSTOM event that tells the user about a run, after a message. */
export interface StoredNotice {
  runId: string;
  messageId?: string;
  name: string;
  value?: unknown;
}

export interface StoredThread extends ThreadFacts {
  /** A page of messages: the last ones, or those before a place. */
  messages: Message[];
  /** Where the page before this one begins; undefined if there are no earlier messages. */
  before?: string;
  runs: Record<string, string>;
  state?: unknown;
  goals: StoredGoal[];
  feedback: Feedback[];
  waiting: Interrupt[];
  answers: StoredAnswer[];
  notices: StoredNotice[];
  continuationToken: string;
}

export interface RunFacts {
  runId: string;
  threadId: string;
  status: string;
  startedAt: number;
  seconds: number;
  events: number;
  tokens?: number;
  /** What has ended it, if it failed. */
  error?: RunErrorEvent;
}

/** A refusal of the server, or no answer at all. */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly requestId?: string,
  ) {
    super(message);
  }
}

export const headers = { [SESSION_HEADER]: session };

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(endpoint(path), { ...init, headers: { ...headers, ...authorization(), ...init.headers } });
  } catch {
    throw new RequestError("UNREACHABLE", "The server cannot be reached.");
  }
  if (!response.ok) throw refusal(await response.text(), response.status);
  return response;
}

/** Parse a refusal, which is a stream of one RUN_ERROR event. */
function refusal(body: string, status: number): RequestError {
  try {
    const { code, message, metadata } = JSON.parse(body.replace(/^data: /, "")) as RunErrorEvent;
    return new RequestError(code ?? "ERROR", message, metadata?.requestId as string | undefined);
  } catch {
    return new RequestError("ERROR", `The server answered with status ${status}.`);
  }
}

async function json<T>(path: string, method = "GET", body?: unknown): Promise<T> {
  const init: RequestInit = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  return (await (await send(path, init)).json()) as T;
}

/** Send a command of which there is no route. */
async function command<T>(type: string, fields: Record<string, unknown>): Promise<T> {
  const frames = await framesOf("invocations", {
    method: "POST",
    body: JSON.stringify({ command: { type, ...fields } }),
  });
  for (const frame of frames) {
    const event = JSON.parse(frame) as { name?: string; value?: T; type: string };
    if (event.type === "RUN_ERROR") throw refusal(frame, 200);
    if (event.name === "command.result") return event.value as T;
  }
  throw new RequestError("ERROR", "The server did not answer the command.");
}

/** The events of a stream, as the text that was sent. */
async function framesOf(path: string, init: RequestInit): Promise<string[]> {
  const text = await (await send(path, init)).text();
  return text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
}

const id = encodeURIComponent;
/** Messages that are loaded at a time. */
const PAGE = 50;
/** Threads that are searched with one request. */
const SEARCHED = 25;

export const api = {
  ping: (signal: AbortSignal) => send("ping", { signal }),
  threads: (page?: string) =>
    json<{ threads: ThreadFacts[]; next?: string }>(page === undefined ? "threads" : `threads?page=${id(page)}`),
  /** Those threads of a page of the list that have a text in their titles or messages. */
  search: (text: string, page?: string) =>
    json<{ threads: ThreadFacts[]; next?: string }>(
      `threads?limit=${SEARCHED}&text=${id(text)}${page === undefined ? "" : `&page=${id(page)}`}`,
    ),
  /** A thread with its last messages, or with those before a place. */
  thread: (threadId: string, before?: string) =>
    json<StoredThread>(`threads/${id(threadId)}?limit=${PAGE}${before === undefined ? "" : `&before=${id(before)}`}`),
  /** What waits for an answer in a thread. */
  waiting: async (threadId: string) => (await json<StoredThread>(`threads/${id(threadId)}?messages=false`)).waiting,
  rename: (threadId: string, title: string) => json<ThreadFacts>(`threads/${id(threadId)}`, "PATCH", { title }),
  remove: (threadId: string) => json<object>(`threads/${id(threadId)}`, "DELETE"),
  fork: (threadId: string, messageId: string, newThreadId?: string) =>
    json<ThreadFacts>(`threads/${id(threadId)}/fork`, "POST", { messageId, newThreadId }),
  feedback: (threadId: string, { messageId, ...rating }: Feedback) =>
    json<Feedback>(`threads/${id(threadId)}/messages/${id(messageId)}/feedback`, "POST", rating),
  runs: () => json<{ runs: RunFacts[] }>("runs"),
  latestRun: (threadId: string) => command<RunFacts>("runs.get", { threadId }),
  capabilities: () => json<AgentCapabilities>("capabilities"),
};

/** Every event of a stored run, as the text that was sent. */
export function storedFrames(threadId: string, runId: string): Promise<string[]> {
  const path = `runs/${id(runId)}/events?threadId=${id(threadId)}`;
  return framesOf(path, { headers: { Accept: "text/event-stream" } });
}

/** Recent runs of a thread that the server still has, the newest first. */
export async function runsOf(threadId: string): Promise<RunFacts[]> {
  return (await api.runs()).runs.filter((run) => run.threadId === threadId);
}

/** A thread with its last messages and its recent runs, or at least the last run of an old thread. */
export async function threadWithRuns(threadId: string): Promise<[StoredThread, RunFacts[]]> {
  const [stored, recent] = await Promise.all([api.thread(threadId), runsOf(threadId).catch(() => [])]);
  if (recent.length > 0 || Object.keys(stored.runs).length === 0) return [stored, recent];
  return [
    stored,
    await api.latestRun(threadId).then(
      (run) => [run],
      () => [],
    ),
  ];
}
