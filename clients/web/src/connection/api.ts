/** Requests to the routes for threads, runs, feedback and capabilities. */

import type { AgentCapabilities, Message } from "@ag-ui/core";
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

export interface StoredThread extends ThreadFacts {
  messages: Message[];
  runs: Record<string, string>;
  state?: unknown;
  goals: StoredGoal[];
  feedback: Feedback[];
  waiting: { id: string; reason: string }[];
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
}

/** A refusal of the server, or no answer at all. */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
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
    const event = JSON.parse(body.replace(/^data: /, "")) as { code: string; message: string };
    return new RequestError(event.code, event.message);
  } catch {
    return new RequestError("ERROR", `The server answered with status ${status}.`);
  }
}

async function json<T>(path: string, method = "GET", body?: unknown): Promise<T> {
  const init: RequestInit = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  return (await (await send(path, init)).json()) as T;
}

const id = encodeURIComponent;

export const api = {
  threads: (page?: string) =>
    json<{ threads: ThreadFacts[]; next?: string }>(page === undefined ? "threads" : `threads?page=${id(page)}`),
  thread: (threadId: string) => json<StoredThread>(`threads/${id(threadId)}`),
  rename: (threadId: string, title: string) => json<ThreadFacts>(`threads/${id(threadId)}`, "PATCH", { title }),
  remove: (threadId: string) => json<object>(`threads/${id(threadId)}`, "DELETE"),
  fork: (threadId: string, messageId: string) =>
    json<ThreadFacts>(`threads/${id(threadId)}/fork`, "POST", { messageId }),
  feedback: (threadId: string, { messageId, ...rating }: Feedback) =>
    json<Feedback>(`threads/${id(threadId)}/messages/${id(messageId)}/feedback`, "POST", rating),
  runs: () => json<{ runs: RunFacts[] }>("runs"),
  capabilities: () => json<AgentCapabilities>("capabilities"),
};

/** Every event of a stored run, as the text that was sent. */
export async function storedFrames(threadId: string, runId: string): Promise<string[]> {
  const response = await send(`runs/${id(runId)}/events?threadId=${id(threadId)}`, {
    headers: { Accept: "text/event-stream" },
  });
  return (await response.text()).split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
}
