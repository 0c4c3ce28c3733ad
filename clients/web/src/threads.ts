/** The list of threads, and the feedback on messages. */

import { api, type Feedback, type RequestError, type ThreadFacts } from "./connection/api";
import { canSignIn } from "./sign-in";
import { Store } from "./store";

/** Time between two requests for the list while a listed run is open or the server cannot be reached. */
const POLL_MS = 3000;

/** Time between two looks at an idle page if the server still answers. */
const LOOK_MS = 2000;

/** Longest time to the answer to a look. A server that hangs is noticed within 5 seconds. */
const ANSWER_MS = 2500;

/** Feedback by message id, for the thread that is shown. */
export const feedback = new Store<Readonly<Record<string, Feedback>>>({});

class Threads {
  readonly list = new Store<readonly ThreadFacts[]>([]);
  readonly next = new Store<string | undefined>(undefined);
  readonly selected = new Store<string | null>(null);
  readonly isReachable = new Store(true);
  /** A sentence about why there is no list; empty when there is one. */
  readonly refusal = new Store("");
  /** A sentence about the last change of the list that failed; empty when there is none. */
  readonly problem = new Store("");
  /** What a search has found so far; null without a search. */
  readonly found = new Store<readonly ThreadFacts[] | null>(null);
  readonly isSearching = new Store(false);
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Number of requests for the list. An answer to an earlier one is dropped. */
  private requests = 0;
  private rest: Promise<void> | undefined;
  /** Number of searches. What an earlier one finds is dropped. */
  private searches = 0;

  /** Put the thread's id into the address, so that a reload or another tab shows the same thread. */
  select(threadId: string | null): void {
    this.selected.set(threadId);
    feedback.set({});
    this.problem.set("");
    const hash = threadId === null ? "" : `#/${encodeURIComponent(threadId)}`;
    if (location.hash !== hash) history.pushState(null, "", hash || location.pathname + location.search);
  }

  /** Ask for the list, and again as long as a listed run is open or the server cannot be reached. */
  async refresh(): Promise<void> {
    const request = ++this.requests;
    try {
      if (!this.isReachable.value) await ping(); // to wait for the list could take as long as the server hangs
      if (request !== this.requests) return;
      this.isReachable.set(true);
      const page = await api.threads();
      if (request !== this.requests) return;
      this.refusal.set("");
      this.putFirst(page.threads, page.next);
    } catch (error) {
      if (request !== this.requests) return;
      const { code, message } = error as RequestError;
      this.isReachable.set(code !== "UNREACHABLE");
      const advice = canSignIn ? "Sign in, or enter" : "Enter";
      this.refusal.set(code === "UNAUTHORIZED" ? `${message} ${advice} one in the inspector, under Server.` : message);
    }
    clearTimeout(this.timer);
    const isRunning = this.list.value.some(({ activeRunId }) => activeRunId !== undefined);
    if (isRunning || !this.isReachable.value) this.timer = setTimeout(() => void this.refresh(), POLL_MS);
  }

  /** Notice a server that has ended while nothing is asked of it. */
  watch(): void {
    setInterval(() => {
      if (document.visibilityState === "visible" && this.isReachable.value) void this.look();
    }, LOOK_MS);
  }

  private async look(): Promise<void> {
    try {
      await ping();
    } catch (error) {
      if ((error as RequestError).code === "UNREACHABLE") this.isReachable.set(false);
      void this.refresh();
    }
  }

  /** Replace the first page of the list. The pages behind it stay if no thread is missing between them and it. */
  private putFirst(page: readonly ThreadFacts[], next: string | undefined): void {
    const list = this.list.value;
    const last = page.at(-1);
    const isNext = list.some((thread) => thread.threadId === last?.threadId && thread.changedAt === last.changedAt);
    const listed = new Set(page.map(({ threadId }) => threadId));
    const isBehind = (thread: ThreadFacts) => thread.changedAt < last!.changedAt && !listed.has(thread.threadId);
    const rest = isNext && next !== undefined ? list.filter(isBehind) : [];
    if (rest.length === 0) this.next.set(next);
    this.list.set([...page, ...rest]);
  }

  /** Load all pages. */
  all(): Promise<void> {
    this.rest ??= this.loadRest().finally(() => {
      this.rest = undefined;
    });
    return this.rest;
  }

  private async loadRest(): Promise<void> {
    while (this.next.value !== undefined && (await this.more())) {}
  }

  /** Find the threads that have a text in their titles or messages. An empty text shows the list again. */
  async search(text: string): Promise<void> {
    const search = ++this.searches;
    this.found.set(text === "" ? null : []);
    this.isSearching.set(text !== "");
    this.problem.set("");
    if (text === "") return;
    let page: string | undefined;
    do {
      const answer = await api.search(text, page).catch((error: Error) => error);
      if (search !== this.searches) return;
      if (answer instanceof Error) {
        this.problem.set(`The search has failed. ${answer.message}`);
        break;
      }
      this.found.update((found) => [...(found ?? []), ...answer.threads]);
      page = answer.next;
    } while (page !== undefined);
    this.isSearching.set(false);
  }

  more(): Promise<boolean> {
    return this.attempt("No more threads were loaded.", async () => {
      if (this.next.value === undefined) return;
      const page = await api.threads(this.next.value);
      const known = new Set(this.list.value.map(({ threadId }) => threadId));
      this.list.update((list) => [...list, ...page.threads.filter(({ threadId }) => !known.has(threadId))]);
      this.next.set(page.next);
    });
  }

  /** Rename the branches of a conversation. */
  rename(threadIds: readonly string[], title: string): Promise<boolean> {
    return this.attempt("The thread was not renamed.", async () => {
      const renamed = new Map(
        (await Promise.all(threadIds.map((id) => api.rename(id, title)))).map((it) => [it.threadId, it]),
      );
      this.list.update((list) => list.map((thread) => renamed.get(thread.threadId) ?? thread));
      void this.refresh(); // the answer to a request from before the change is dropped
    });
  }

  /** Delete the branches of a conversation. */
  remove(threadIds: readonly string[]): Promise<boolean> {
    return this.attempt("The thread was not deleted.", async () => {
      for (const id of threadIds) await api.remove(id); // the last one that names a file takes the file with it
      this.list.update((list) => list.filter((thread) => !threadIds.includes(thread.threadId)));
      void this.refresh(); // the answer to a request from before the change is dropped
    });
  }

  /** Do what was asked for. If it fails, show why and return false. */
  private async attempt(failure: string, action: () => Promise<void>): Promise<boolean> {
    this.problem.set("");
    try {
      await action();
      return true;
    } catch (error) {
      this.problem.set(`${failure} ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }
}

/** Wait until the server answers, but not longer than for a look. */
async function ping(): Promise<void> {
  const look = new AbortController();
  const timer = setTimeout(() => look.abort(), ANSWER_MS);
  try {
    await api.ping(look.signal);
  } finally {
    clearTimeout(timer);
  }
}

export const threads = new Threads();

/** The title of a thread. A thread whose first message is a file has none. */
export function titleOf({ title }: ThreadFacts): string {
  return title ?? "Untitled";
}

/** The thread that the address names. */
export function threadInAddress(): string | null {
  if (!location.hash.startsWith("#/")) return null;
  try {
    return decodeURIComponent(location.hash.slice(2));
  } catch {
    return null; // the address has a fragment that is not encoded
  }
}

export async function rate(threadId: string, rating: Feedback): Promise<void> {
  const stored = await api.feedback(threadId, rating);
  feedback.update((all) => ({ ...all, [rating.messageId]: stored }));
}
