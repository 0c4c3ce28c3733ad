/**
 * The seam to the agents: start or follow a run, over SSE or WebSocket.
 *
 * Rule: the only module that knows which agent class carries a run. Agents and the official client are loaded after the
 * first paint.
 */

import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
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
  /** Stop reading. The run goes on. */
  detach(): void;
}

/** Load what runs need. The page calls it while the user looks at the first view. */
export function loadAgents() {
  return import("./agents");
}

type Agents = Awaited<ReturnType<typeof loadAgents>>;

export class Transport {
  wire: Wire = "sse";

  constructor(private readonly log: FrameLog) {}

  /** Start a run, or follow one when the input carries the command `attach`. Lost connections are made again. */
  run(input: RunAgentInput, listener: RunListener): RunHandle {
    let detached = false;
    let unsubscribe = () => {};
    const read = async () => {
      listener.onLink("connecting");
      const agents = await loadAgents();
      const agent = this.agent(agents, input.runId, () => listener.onLink("resuming"));
      this.log.add("out", input.runId, JSON.stringify(input), "RUN_INPUT");
      await new Promise<void>((resolve, reject) => {
        const subscription = agents.verified(agent.run(input)).subscribe({
          next: (event) => {
            listener.onLink("open");
            listener.onEvent(event);
          },
          error: reject,
          complete: resolve,
        });
        unsubscribe = () => {
          subscription.unsubscribe();
          resolve();
        };
        if (detached) unsubscribe();
      });
    };
    const done = read().finally(() => {
      if (!detached) listener.onLink("idle");
    });
    return {
      done,
      detach: () => {
        detached = true;
        unsubscribe();
      },
    };
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
