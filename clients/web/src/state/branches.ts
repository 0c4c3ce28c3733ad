/**
 * Branches of a conversation: what else was answered to a message of the user.
 *
 * To ask again, or to edit a message, forks the thread at that message, so no turn is lost. The id of such a fork is
 * the id of the thread with a suffix. So the list of threads says what belongs together, also for threads that are not
 * loaded, and a fork that the user has asked for stays a conversation of its own.
 */

import type { UserMessage } from "@ag-ui/core";
import type { ThreadFacts } from "../connection/api";
import type { ChatState } from "./types";

const SUFFIX = /~[0-9a-f]{8}$/;

/** The id of a new branch. */
export function branchId(threadId: string, random: string): string {
  return `${rootOf(threadId)}~${random.slice(0, 8)}`;
}

/** The chat before a message of the user, with this version of it. A notice belongs to the message that it follows. */
export function branchAt(chat: Pick<ChatState, "messages" | "notices">, message: UserMessage): Partial<ChatState> {
  const at = chat.messages.findIndex(({ id }) => id === message.id);
  const left = new Set<string | null>(chat.messages.slice(at).map(({ id }) => id));
  const notices = chat.notices.filter(({ afterMessageId }) => !left.has(afterMessageId));
  return { messages: [...chat.messages.slice(0, at), message], notices, interrupts: [], answers: [], pendingCalls: [] };
}

/** The id of the conversation that a branch belongs to, and of any other thread itself. */
export function rootOf(threadId: string): string {
  return threadId.replace(SUFFIX, "");
}

/** True for a thread that continues another conversation, but not for one of its branches. */
export function isFork({ threadId, forkedFrom }: ThreadFacts): boolean {
  return forkedFrom !== undefined && rootOf(threadId) === threadId;
}

/** The conversations of a list: each is its branches, in the order of the list. */
export function conversations(list: readonly ThreadFacts[]): ThreadFacts[][] {
  const found = new Map<string, ThreadFacts[]>();
  for (const thread of list) {
    const root = rootOf(thread.threadId);
    found.set(root, [...(found.get(root) ?? []), thread]);
  }
  return [...found.values()];
}

export interface Versions {
  /** Threads with the versions of a message and what follows it, the oldest first. */
  threadIds: readonly string[];
  /** Position of the version that is shown. */
  at: number;
}

/** Find the versions of a message that a thread shows. Undefined if there is only one. */
export function versionsOf(list: readonly ThreadFacts[], threadId: string, messageId: string): Versions | undefined {
  const root = rootOf(threadId);
  const branches = new Map(list.filter((each) => rootOf(each.threadId) === root).map((each) => [each.threadId, each]));
  const forks = [...branches.values()].filter((each) => isBranchAt(each, messageId));
  if (forks.length === 0) return undefined;
  forks.sort((one, other) => one.createdAt - other.createdAt);
  const threadIds = [originOf(branches, forks[0]!, messageId), ...forks.map((fork) => fork.threadId)];
  return { threadIds, at: Math.max(0, threadIds.indexOf(versionOf(branches, threadId, messageId) ?? "")) };
}

function isBranchAt({ threadId, forkedFrom }: ThreadFacts, messageId: string): boolean {
  return forkedFrom?.messageId === messageId && rootOf(threadId) !== threadId;
}

/** The thread with the first version: the nearest one before a branch that did not begin at the message itself. */
function originOf(branches: ReadonlyMap<string, ThreadFacts>, branch: ThreadFacts, messageId: string): string {
  const parent = branch.forkedFrom!.threadId;
  const known = branches.get(parent);
  return known !== undefined && isBranchAt(known, messageId) ? originOf(branches, known, messageId) : parent;
}

/** The branch that began at the message, if the thread is that branch or continues it. */
function versionOf(
  branches: ReadonlyMap<string, ThreadFacts>,
  threadId: string,
  messageId: string,
): string | undefined {
  let thread = branches.get(threadId);
  while (thread !== undefined && !isBranchAt(thread, messageId))
    thread = branches.get(thread.forkedFrom?.threadId ?? "");
  return thread?.threadId;
}
