/**
 * Commands for threads, runs, feedback and capabilities.
 *
 * Rule: they go to `/invocations`, because AgentCore passes nothing else on.
 */

import {
  type AgentCapabilities,
  type BaseEvent,
  EventType,
  type Interrupt,
  type Message,
  type ResumeEntry,
  type RunAgentInput,
  type RunErrorEvent,
  type RunFinishedEvent,
} from "@ag-ui/core";
import type { Command, CommandResult } from "@agui-container/client";
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
  feedback: Feedback[];
  waiting: Interrupt[];
  answers: StoredAnswer[];
  notices: StoredNotice[];
  continuationToken: string;
}

export interface StoredFile {
  name: string;
  mimeType: string;
  /** The bytes as base64. */
  data: string;
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
    /** Status of the answer; undefined if there was none, or if the answer had begun well. */
    readonly status?: number,
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
    return errorOf(JSON.parse(framesIn(body)[0] ?? body) as RunErrorEvent, status);
  } catch {
    return new RequestError("ERROR", `The server answered with status ${status}.`, undefined, status);
  }
}

function errorOf({ code, message, metadata }: RunErrorEvent, status?: number): RequestError {
  return new RequestError(code ?? "ERROR", message, metadata?.requestId as string | undefined, status);
}

/** Pauses before a command is sent again that AgentCore has refused, because its session begins. */
const PAUSES_MS = [250, 500, 1000, 2000, 4000];

/** True for a refusal of AgentCore itself, in its form for AG-UI or for other protocols. */
function isSessionBusy(error: unknown): boolean {
  const { status, code } = error as RequestError;
  return status === 409 && (code === "SESSION_BUSY" || code === "ERROR");
}

/** Send a command, and return the events of its answer as the text that was sent. */
function framesOf(type: string, fields: object): Promise<string[]> {
  return invoke({ command: { type, ...fields } });
}

/** Run an input that is no turn of its thread, and return the end of the run. */
export async function runAside(input: RunAgentInput): Promise<RunFinishedEvent> {
  const end = JSON.parse((await invoke(input)).at(-1) ?? "{}") as BaseEvent;
  if (end.type === EventType.RUN_ERROR) throw errorOf(end as RunErrorEvent);
  if (end.type === EventType.RUN_FINISHED) return end as RunFinishedEvent;
  throw new RequestError("ERROR", "The server did not answer the request.");
}

async function invoke(request: object): Promise<string[]> {
  const body = JSON.stringify(request);
  for (const pause of PAUSES_MS) {
    try {
      return await post(body);
    } catch (error) {
      if (!isSessionBusy(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return post(body);
}

async function post(body: string): Promise<string[]> {
  const response = await send("invocations", { method: "POST", body });
  return framesIn(await response.text());
}

function framesIn(text: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
}

/** Send a command, and return its result. */
async function command<T>(type: string, fields: object = {}): Promise<T> {
  for (const frame of await framesOf(type, fields)) {
    const event = JSON.parse(frame) as BaseEvent & { name?: string; value?: T };
    if (event.type === EventType.RUN_ERROR) throw errorOf(event as RunErrorEvent);
    if (event.name === "command.result") return event.value as T;
  }
  throw new RequestError("ERROR", "The server did not answer the command.");
}

/** Messages that are loaded at a time. */
const PAGE = 50;
/** Threads that are searched with one command. */
const SEARCHED = 25;

type ThreadPage = { threads: ThreadFacts[]; next?: string };

export const api = {
  ping: (signal: AbortSignal) => send("ping", { signal }),
  threads: (page?: string) => command<ThreadPage>("threads.list", { page }),
  /** Those threads of a page of the list that have a text in their titles or messages. */
  search: (text: string, page?: string) => command<ThreadPage>("threads.list", { limit: SEARCHED, text, page }),
  /** A thread with its last messages, or with those before a place. */
  thread: (threadId: string, before?: string) =>
    command<StoredThread>("threads.get", { threadId, limit: PAGE, before }),
  /** What waits for an answer in a thread. */
  waiting: async (threadId: string) =>
    (await command<StoredThread>("threads.get", { threadId, messages: false })).waiting,
  rename: (threadId: string, title: string) => command<ThreadFacts>("threads.rename", { threadId, title }),
  remove: (threadId: string) => command<object>("threads.delete", { threadId }),
  fork: (threadId: string, messageId: string, newThreadId?: string) =>
    command<ThreadFacts>("threads.fork", { threadId, messageId, newThreadId }),
  feedback: (threadId: string, rating: Feedback) => command<Feedback>("threads.feedback", { threadId, ...rating }),
  file: (fileId: string) => command<StoredFile>("files.get", { fileId }),
  /** Any command, for what sends commands of its own. */
  command: ({ type, ...fields }: Command) => command<CommandResult>(type, fields),
  runs: () => command<{ runs: RunFacts[] }>("runs.list"),
  latestRun: (threadId: string) => command<RunFacts>("runs.get", { threadId }),
  capabilities: async () => (await command<{ capabilities: AgentCapabilities }>("capabilities")).capabilities,
};

/** Every event of a stored run, as the text that was sent. */
export function storedFrames(threadId: string, runId: string): Promise<string[]> {
  return framesOf("attach", { threadId, runId });
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
