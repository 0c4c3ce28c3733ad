/** An AG-UI agent over WebSocket. */

import {
  AbstractAgent,
  type AgentCapabilities,
  type AgentConfig,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
} from "@ag-ui/client";
import type { Observable } from "rxjs";
import { type Attachment, attachmentOf } from "./files.js";
import { followRun, type ResumeOptions } from "./run.js";
import { showThread } from "./thread.js";
import type { Command, CommandResult } from "./transport.js";
import { WebSocketTransport, type WebSocketTransportOptions } from "./websocket-transport.js";

export interface WebSocketAgentConfig extends AgentConfig, ResumeOptions, WebSocketTransportOptions {}

/** Parameters of one run. */
export interface RunParameters extends RunAgentParameters {
  /** An abort cancels the run, as `abortRun()` does. */
  abortController?: AbortController;
}

/**
 * An agent over WebSocket that reconnects when a connection drops.
 *
 * Clones share the sockets. `runAgent()` and `connectAgent()` reject with the errors of this package.
 */
export class WebSocketAgent extends AbstractAgent {
  /** Cancels the current run. */
  abortController = new AbortController();
  private transport: WebSocketTransport;
  private options: ResumeOptions;

  constructor(config: WebSocketAgentConfig) {
    super(config);
    this.transport = new WebSocketTransport(config);
    this.options = config;
  }

  override runAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.abortController = parameters?.abortController ?? new AbortController();
    return super.runAgent(parameters, subscriber);
  }

  override connectAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.abortController = parameters?.abortController ?? new AbortController();
    return super.connectAgent(parameters, subscriber);
  }

  run(input: RunAgentInput): Observable<BaseEvent> {
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

  /** Close idle sockets, which otherwise stay open for `idleTimeoutMs`. The agent stays usable. */
  close(): void {
    this.transport.close();
  }

  override clone(): WebSocketAgent {
    const clone = super.clone() as WebSocketAgent;
    clone.abortController = new AbortController();
    clone.transport = this.transport;
    clone.options = this.options;
    return clone;
  }

  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    return showThread(this.transport, input, this.options, this.abortController.signal);
  }
}
