/**
 * Runs over SSE or WebSocket, by the agents of the TypeScript client.
 *
 * Rule: no other module uses the agent classes. They and the official client are loaded after the first paint.
 */

import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { Observable } from "rxjs";
import { endpoint, session } from "../config";
import { token } from "../token";
import { type FrameLog, logged } from "./frames";

export type Wire = "sse" | "websocket";

/** `resuming`: the connection was lost and is being made again. */
export type LinkState = "idle" | "connecting" | "open" | "resuming";

export interface RunListener {
  onEvent(event: BaseEvent): void;
  onLink(state: LinkState): void;
}

export interface RunHandle {
  /** Resolves after the last event; rejects when the run cannot be read to its end. */
  readonly done: Promise<void>;
  /** Stop reading. The run continues at the server. */
  detach(): void;
  /** Cancel the run at the server. `done` resolves after its last event, or at once if it has no event yet. */
  cancel(): void;
}

/** Load the agents. The page calls it after the first paint. */
export function loadAgents() {
  return import("./agents");
}

type Agents = Awaited<ReturnType<typeof loadAgents>>;

export class Transport {
  wire: Wire = "sse";

  constructor(private readonly log: FrameLog) {}

  /** Start a run, or follow one if the input has the command `attach`. The agent reconnects after a drop. */
  run(input: RunAgentInput, listener: RunListener): RunHandle {
    const reader: RunReader = new RunReader(listener, async () => {
      const agents = await loadAgents();
      const agent = this.agent(agents, input.runId, () => reader.show("resuming"));
      this.log.add("out", input.runId, JSON.stringify(input), "RUN_INPUT");
      return { agent, events: agents.verified(agent.run(input)) };
    });
    return reader;
  }

  private agent({ ResumableHttpAgent, WebSocketAgent }: Agents, runId: string, onReconnect: () => void): AbstractAgent {
    const bearer = () => token.value || undefined;
    const onFrame = (text: string) => this.log.add("in", runId, text);
    if (this.wire === "websocket") {
      return new WebSocketAgent({
        url: endpoint("ws"),
        sessionId: session,
        token: bearer,
        onReconnect,
        idleTimeoutMs: 0,
        webSocketFactory: (url, protocols) => {
          const socket = new WebSocket(url, protocols);
          socket.addEventListener("message", ({ data }) => onFrame(String(data)));
          return socket;
        },
      });
    }
    return new ResumableHttpAgent({
      url: endpoint("invocations"),
      sessionId: session,
      token: bearer,
      onReconnect,
      fetch: async (url, init) => logged(await fetch(url, init), onFrame),
    });
  }
}

interface RunStream {
  agent: AbstractAgent;
  events: Observable<BaseEvent>;
}

class RunReader implements RunHandle {
  readonly done: Promise<void>;
  private stream: RunStream | undefined;
  private hasBegun = false;
  /** True if the listener gets no more events. */
  private isOver = false;
  private resolve = () => {};
  private unsubscribe = () => {};

  constructor(
    private readonly listener: RunListener,
    open: () => Promise<RunStream>,
  ) {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.read(open).then(resolve, reject);
    });
  }

  show(state: LinkState): void {
    if (!this.isOver) this.listener.onLink(state);
  }

  detach(): void {
    this.isOver = true;
    this.unsubscribe();
    this.resolve();
  }

  cancel(): void {
    this.stream?.agent.abortRun();
    if (this.hasBegun) return;
    this.show("idle");
    this.isOver = true;
    this.resolve();
  }

  private async read(open: () => Promise<RunStream>): Promise<void> {
    this.show("connecting");
    try {
      const stream = await open();
      if (!this.isOver) await this.follow(stream);
    } finally {
      this.show("idle");
    }
  }

  private follow(stream: RunStream): Promise<void> {
    this.stream = stream;
    return new Promise((resolve, reject) => {
      const next = (event: BaseEvent) => this.deliver(event);
      const subscription = stream.events.subscribe({ next, error: reject, complete: resolve });
      this.unsubscribe = () => subscription.unsubscribe();
    });
  }

  private deliver(event: BaseEvent): void {
    if (this.isOver) return;
    this.hasBegun = true;
    this.show("open");
    this.listener.onEvent(event);
  }
}
