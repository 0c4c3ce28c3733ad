/**
 * What the modules of the page find in a browser, and a server whose answers a test can hold.
 *
 * Import it before the modules of the page, which look at the document when they are loaded.
 */

import type { RunAgentInput } from "@ag-ui/core";
import { Store } from "../src/store";

function storage() {
  const values = new Map<string, string>();
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
    removeItem: (key: string) => void values.delete(key),
  };
}

export const location = { hash: "", pathname: "/", search: "" };
const window = { localStorage: storage(), sessionStorage: storage() };
window.localStorage.setItem("agui.session", "short");
Object.assign(globalThis, {
  window,
  location,
  ...window,
  document: { documentElement: { dataset: {} }, baseURI: "http://server.example/", visibilityState: "visible" },
  history: {
    pushState: (_state: unknown, _title: string, address: string) => {
      location.hash = address.startsWith("#") ? address : "";
    },
  },
  requestAnimationFrame: (callback: () => void) => setTimeout(callback),
  cancelAnimationFrame: clearTimeout,
  fetch: (url: string, init: RequestInit) => server.answer(url, init),
});

type Events = readonly object[];
type Command = { type: string; threadId?: string } & Record<string, unknown>;

/** A thread as `threads.get` gives it. */
export function storedThread(threadId: string, fields: object = {}) {
  const lists = { messages: [], runs: {}, feedback: [], waiting: [], answers: [], notices: [] };
  const facts = { status: "user_turn", createdAt: 1, changedAt: 1, continuationToken: "t" };
  return { threadId, ...lists, ...facts, ...fields };
}

class Server {
  readonly threads = new Map<string, object>();
  /** Inputs of runs that have arrived. */
  readonly inputs: RunAgentInput[] = [];
  readonly arrivals = new Store(0);
  /** Runs that were cancelled while they were held. */
  readonly cancelled = new Store<readonly string[]>([]);
  /** Types of commands that no server answers. */
  readonly failing = new Set<string>();
  /** Results of commands in place of the usual ones. */
  results: Record<string, object> = {};
  /** What each run is refused with. */
  refusal: object | undefined;
  /** The last event of a run. */
  ending: (input: RunAgentInput) => object = finish;
  private readonly held = new Map<string, Promise<void>>();

  reset(): void {
    this.threads.clear();
    this.inputs.length = 0;
    this.arrivals.set(0);
    this.cancelled.set([]);
    this.failing.clear();
    this.results = {};
    this.refusal = undefined;
    this.ending = finish;
    this.held.clear();
  }

  /** Hold the answers to a type of commands, or to `run`; returns a function that lets them go. */
  hold(type: string): () => void {
    let release = () => {};
    this.held.set(type, new Promise((resolve) => (release = resolve)));
    return () => {
      this.held.delete(type);
      release();
    };
  }

  async answer(url: string, init: RequestInit): Promise<Response> {
    if (url.endsWith("/ping")) return this.pong(init.signal);
    const body = JSON.parse(String(init.body ?? "{}"));
    const command: Command | undefined = body.command ?? body.forwardedProps?.command;
    if (this.failing.has(command?.type ?? "")) throw new TypeError("no answer");
    if (command === undefined && body.runId !== undefined) this.arrive(body);
    await this.held.get(command?.type ?? "run");
    if (command?.type === "cancel") this.cancelled.update((runIds) => [...runIds, String(command.runId)]);
    if (command !== undefined && command.type !== "attach") return this.result(command);
    if (this.refusal !== undefined) return stream([{ type: "RUN_ERROR", ...this.refusal }]);
    const ids = { threadId: body.threadId, runId: body.runId };
    return stream([
      { type: "RUN_STARTED", ...ids },
      { ...ids, ...this.ending(body) },
    ]);
  }

  private async pong(signal: AbortSignal | null | undefined): Promise<Response> {
    const isOver = new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
    await Promise.race([this.held.get("ping"), isOver]);
    if (signal?.aborted) throw new TypeError("no answer");
    return new Response("{}");
  }

  private arrive(input: RunAgentInput): void {
    this.inputs.push(input);
    this.arrivals.update((count) => count + 1);
  }

  private result({ type, threadId }: Command): Response {
    const stored = this.threads.get(threadId ?? "");
    if (type === "threads.get" && stored === undefined) {
      return stream([{ type: "RUN_ERROR", code: "THREAD_NOT_FOUND", message: "There is no such thread." }], 404);
    }
    const results: Record<string, object> = {
      "threads.get": stored ?? {},
      "threads.list": { threads: [] },
      "threads.fork": { threadId: `${threadId}~fork` },
      "runs.list": { runs: [] },
      ...this.results,
    };
    return stream([{ type: "CUSTOM", name: "command.result", value: results[type] ?? {} }]);
  }
}

function finish(): object {
  return { type: "RUN_FINISHED" };
}

function stream(events: Events, status = 200): Response {
  const frames = events.map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`);
  return new Response(frames.join(""), { status, headers: { "Content-Type": "text/event-stream" } });
}

export const server = new Server();

/** Wait until the value of a store is as it should be. */
export function until<T>(
  store: { value: T; subscribe(listener: () => void): () => void },
  isRight: (value: T) => boolean,
) {
  return new Promise<void>((resolve) => {
    if (isRight(store.value)) return resolve();
    const stop = store.subscribe(() => {
      if (!isRight(store.value)) return;
      stop();
      resolve();
    });
  });
}
