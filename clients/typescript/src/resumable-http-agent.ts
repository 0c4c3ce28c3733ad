/** An AG-UI agent over HTTP and Server-Sent Events. */

import {
  type AgentCapabilities,
  type AgentSubscriber,
  type BaseEvent,
  HttpAgent,
  type HttpAgentConfig,
  type RunAgentInput,
  type RunAgentResult,
} from "@ag-ui/client";
import type { Observable } from "rxjs";
import { type Attachment, attachmentOf } from "./files.js";
import { HttpTransport } from "./http-transport.js";
import { followRun, type ResumeOptions } from "./run.js";
import { showThread } from "./thread.js";
import type { Command, CommandResult, Provided } from "./transport.js";
import type { RunParameters } from "./websocket-agent.js";

export interface ResumableHttpAgentConfig extends HttpAgentConfig, ResumeOptions {
  /** Bearer token, or a function that returns one for each request. */
  token?: Provided<string | undefined>;
  /** Id of the AgentCore session: 33 to 256 characters. */
  sessionId?: string;
  /** Silence after which a response counts as dropped. The server sends a comment every 15 s. Default 45,000. */
  silenceTimeoutMs?: number;
}

/**
 * An `HttpAgent` that reconnects when a connection drops, and whose `abortRun()` cancels at the server.
 *
 * `runAgent()` and `connectAgent()` reject with the errors of this package.
 */
export class ResumableHttpAgent extends HttpAgent {
  private transport: HttpTransport;
  private options: ResumableHttpAgentConfig;

  constructor(config: ResumableHttpAgentConfig) {
    super(config);
    this.options = config;
    this.transport = this.makeTransport();
  }

  override connectAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.abortController = parameters?.abortController ?? new AbortController();
    return super.connectAgent(parameters, subscriber);
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    const { threadId, runId } = input;
    return followRun(this.transport, { threadId, runId, input }, this.options, this.abortController.signal);
  }

  /** Cancel the current run at the server. Its stream then ends with the outcome `cancelled`. */
  override abortRun(): void {
    this.abortController.abort();
  }

  /** Send a command to the server, for example `{ type: "threads.list" }`. */
  command(command: Command): Promise<CommandResult> {
    return this.transport.command(command);
  }

  /** Make the content part of a file for a message. A large file is uploaded, if the server keeps files. */
  attachment(file: File): Promise<Attachment> {
    return attachmentOf(file, this);
  }

  override async getCapabilities(): Promise<AgentCapabilities> {
    const { capabilities } = await this.command({ type: "capabilities" });
    return capabilities as AgentCapabilities;
  }

  override clone(): ResumableHttpAgent {
    const clone = super.clone() as ResumableHttpAgent;
    clone.abortController = new AbortController();
    clone.options = this.options;
    clone.transport = clone.makeTransport();
    return clone;
  }

  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    return showThread(this.transport, input, this.options, this.abortController.signal);
  }

  /** Make a transport that reads `url`, `headers` and `fetch` for each request, because users may change them. */
  private makeTransport(): HttpTransport {
    const { token, sessionId, silenceTimeoutMs = 45_000 } = this.options;
    return new HttpTransport({
      url: () => this.url,
      headers: () => this.headers,
      fetch: (url, init) => this.fetch(url, init),
      token,
      sessionId,
      silenceTimeoutMs,
    });
  }
}
