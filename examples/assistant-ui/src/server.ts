/** Threads as the agent server keeps them: its list, one with its messages, and what the user says of an answer. */

import type { Message } from "@ag-ui/client";

export interface Thread {
  threadId: string;
  title?: string;
}

export interface ThreadWithMessages extends Thread {
  messages: Message[];
  feedback: { messageId: string; sentiment: "positive" | "negative" }[];
  waiting: unknown[];
  activeRunId?: string;
}

export async function listThreads(): Promise<Thread[]> {
  const { threads } = await request("/threads");
  return threads;
}

/** The thread, or undefined if nothing has been said in it. */
export async function getThread(threadId: string): Promise<ThreadWithMessages | undefined> {
  return await request(`/threads/${encodeURIComponent(threadId)}`);
}

export async function deleteThread(threadId: string): Promise<void> {
  await request(`/threads/${encodeURIComponent(threadId)}`, { method: "DELETE" });
}

export async function rate(threadId: string, messageId: string, sentiment: "positive" | "negative"): Promise<void> {
  const path = `/threads/${encodeURIComponent(threadId)}/messages/${encodeURIComponent(messageId)}/feedback`;
  await request(path, { method: "POST", body: JSON.stringify({ sentiment }) });
}

async function request(path: string, options?: RequestInit) {
  const response = await fetch(path, options);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return await response.json();
}
