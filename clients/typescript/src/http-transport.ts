/**
 * Runs and commands as POST requests to `/invocations`, answered by Server-Sent Events.
 *
 * Rule: everything is a POST to the one URL, also the attach after a drop, because AgentCore forwards no other route.
 * The cursor is the last `id:` that arrived. An attach sends it as `Last-Event-ID`, as an EventSource does, and as
 * `after` in the body, because AgentCore forwards only headers that are configured.
 */

import type { BaseEvent } from "@ag-ui/client";
import { ConnectionDropped } from "./errors.js";
import { requestError } from "./refusals.js";
import { serverSentEvents } from "./sse.js";
import {
  absolute,
  type Command,
  type CommandResult,
  callerHeaders,
  checkSessionId,
  isObject,
  isTerminal,
  type Provided,
  parseObject,
  provide,
  refusal,
  type StreamObserver,
  type StreamRequest,
  type Transport,
} from "./transport.js";

const EVENT_STREAM = "text/event-stream";

export interface HttpTransportOptions {
  url: Provided<string | URL>;
  headers: () => Record<string, string>;
  token?: Provided<string | undefined> | undefined;
  sessionId?: string | undefined;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  silenceTimeoutMs: number;
}

interface PreparedRequest {
  url: string;
  init: RequestInit;
}

export class HttpTransport implements Transport {
  readonly mergesDeltas = false;

  constructor(private readonly options: HttpTransportOptions) {
    checkSessionId(options.sessionId);
  }

  async stream(request: StreamRequest, observer: StreamObserver, signal: AbortSignal): Promise<void> {
    const send = (command: Command) => this.command(command);
    const prepared = await this.prepare(request);
    signal.throwIfAborted();
    observer.opened(send); // a command may arrive before this request, so `opened` is called for the answer, too
    const response = await this.post(prepared, signal);
    observer.opened(send);
    for await (const { event, seq } of this.events(response)) {
      signal.throwIfAborted();
      observer.event(event, seq);
      if (isTerminal(event)) return;
    }
  }

  async command(command: Command, signal?: AbortSignal): Promise<CommandResult> {
    const response = await this.post(await this.prepare({ command }), signal);
    for await (const { event } of this.events(response)) {
      if (event.type === "CUSTOM" && isObject(event.value)) return event.value;
    }
    throw new ConnectionDropped("The answer to a command broke off.");
  }

  close(): void {}

  private async prepare(request: StreamRequest | { command: Command }): Promise<PreparedRequest> {
    const url = absolute(await provide(this.options.url));
    const headers = await this.headers();
    let body: object = "input" in request ? request.input : request;
    if ("attach" in request) {
      body = { command: { type: "attach", ...request.attach } };
      if (!isForeign(url)) headers["Last-Event-ID"] = String(request.attach.after);
    }
    return { url: url.href, init: { method: "POST", headers, body: JSON.stringify(body) } };
  }

  /** Send a request. Its answer is a stream of events, or a refusal. */
  private async post(request: PreparedRequest, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.answer(request, signal);
    const type = response.headers.get("Content-Type") ?? EVENT_STREAM;
    if (!response.ok || !type.includes(EVENT_STREAM)) throw await requestError(response, this.options.silenceTimeoutMs);
    if (!response.body) throw new ConnectionDropped("The response has no body.");
    return response.body;
  }

  /** Wait for the head of a response. Throws ConnectionDropped if the head does not arrive in time. */
  private async answer({ url, init }: PreparedRequest, signal: AbortSignal | undefined): Promise<Response> {
    const { silenceTimeoutMs } = this.options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), silenceTimeoutMs);
    try {
      const signals = signal ? [signal, late.signal] : [late.signal];
      return await this.options.fetch(url, { ...init, signal: AbortSignal.any(signals) });
    } catch (error) {
      signal?.throwIfAborted();
      const message = late.signal.aborted ? `The server was silent for ${silenceTimeoutMs} ms.` : "The request failed.";
      throw new ConnectionDropped(message, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  private async headers(): Promise<Record<string, string>> {
    const { token, sessionId } = this.options;
    return {
      ...this.options.headers(),
      ...callerHeaders(await provide(token), sessionId),
      "Content-Type": "application/json",
      Accept: EVENT_STREAM,
    };
  }

  /** Events with their numbers. A RUN_ERROR that alone has no number belongs to no run: it is a refusal. */
  private async *events(
    body: ReadableStream<Uint8Array>,
  ): AsyncGenerator<{ event: BaseEvent; seq: number | undefined }> {
    let lacksNumbers = false;
    for await (const { id, data } of serverSentEvents(body, this.options.silenceTimeoutMs)) {
      const event = parseObject(data) as BaseEvent;
      if (id === undefined && event.type === "RUN_ERROR" && !lacksNumbers) throw refusal(event);
      lacksNumbers ||= id === undefined;
      yield { event, seq: id === undefined ? undefined : Number(id) };
    }
  }
}

/** True for another origin than the page's. If its CORS rules do not allow `Last-Event-ID`, the whole request fails. */
function isForeign(url: URL): boolean {
  return globalThis.location !== undefined && url.origin !== globalThis.location.origin;
}
