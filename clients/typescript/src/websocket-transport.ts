/**
 * Runs and commands over WebSockets, which stay open for later runs and commands.
 *
 * Rule: a socket serves any number of runs, one after the other. Runs at the same time have a socket each: the server
 * streams one run of a socket at a time, because most events do not name their run.
 */

import { Connection, type ConnectionOptions, HandshakeFailed, type WebSocketLike } from "./connection.js";
import { base64 } from "./files.js";
import { handshakeError } from "./refusals.js";
import {
  absolute,
  type Command,
  type CommandResult,
  callerHeaders,
  checkSessionId,
  type Provided,
  provide,
  SESSION,
  type StreamObserver,
  type StreamRequest,
  type Transport,
} from "./transport.js";

/** Makes a socket. `headers` are those of the agent; only a factory for Node.js can send them. */
export type WebSocketFactory = (url: string, protocols: string[], headers: Record<string, string>) => WebSocketLike;

export interface WebSocketTransportOptions extends ConnectionOptions {
  url: Provided<string | URL>;
  token?: Provided<string | undefined> | undefined;
  /** Id of the AgentCore session: 33 to 256 characters. */
  sessionId?: string | undefined;
  headers?: Record<string, string> | undefined;
  webSocketFactory?: WebSocketFactory | undefined;
  /** Time after which an unused socket is closed. Default 60,000. */
  idleTimeoutMs?: number;
}

/** AgentCore's subprotocol for a bearer token, and the prefix of the one that holds it. */
const BEARER = "base64UrlBearerAuthorization";

export class WebSocketTransport implements Transport {
  readonly mergesDeltas = true;
  private hasOpened = false;
  private readonly idleTimers = new Map<Connection, ReturnType<typeof setTimeout>>();

  constructor(private readonly options: WebSocketTransportOptions) {
    checkSessionId(options.sessionId);
  }

  async stream(request: StreamRequest, observer: StreamObserver, signal: AbortSignal): Promise<void> {
    await this.with((connection) => connection.read(request, observer, signal), signal);
  }

  async command(command: Command, signal?: AbortSignal): Promise<CommandResult> {
    return await this.with((connection) => connection.command(command, signal), signal);
  }

  close(): void {
    for (const connection of [...this.idleTimers.keys()]) connection.close();
  }

  /** Use an idle socket, or a new one, and keep the socket afterwards if it is still open. */
  private async with<T>(use: (connection: Connection) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const connection = this.takeIdle() ?? (await this.connect(signal));
    try {
      return await use(connection);
    } finally {
      if (connection.isOpen) this.keep(connection);
      else connection.close();
    }
  }

  private takeIdle(): Connection | undefined {
    for (const connection of this.idleTimers.keys()) {
      this.stopTimer(connection);
      if (connection.isOpen) return connection;
    }
    return undefined;
  }

  private keep(connection: Connection): void {
    const { idleTimeoutMs = 60_000 } = this.options;
    this.idleTimers.set(
      connection,
      setTimeout(() => connection.close(), idleTimeoutMs),
    );
  }

  private stopTimer(connection: Connection): void {
    clearTimeout(this.idleTimers.get(connection));
    this.idleTimers.delete(connection);
  }

  private async connect(signal: AbortSignal | undefined): Promise<Connection> {
    const { headers = {}, webSocketFactory = browserWebSocket } = this.options;
    const url = await this.url();
    const token = await provide(this.options.token);
    const protocols = token === undefined ? [] : [`${BEARER}.${base64Url(token)}`, BEARER];
    try {
      const connection = await Connection.open(webSocketFactory(url.href, protocols, headers), this.options, signal);
      connection.onClose = () => this.stopTimer(connection);
      this.hasOpened = true;
      return connection;
    } catch (error) {
      if (!(error instanceof HandshakeFailed)) throw error;
      throw (await this.readRefusal(url, token, signal)) ?? error;
    }
  }

  /**
   * Return the refusal of a handshake that failed, if it can be read.
   *
   * A WebSocket hides the status and the body of the response. A GET of the same URL by the same caller has both.
   */
  private async readRefusal(
    url: URL,
    token: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Error | undefined> {
    const { headers = {}, sessionId, connectTimeoutMs = 30_000 } = this.options;
    const httpUrl = new URL(url);
    httpUrl.protocol = url.protocol.replace("ws", "http");
    const late = AbortSignal.timeout(connectTimeoutMs);
    const caller = isPresigned(url) ? {} : callerHeaders(token, sessionId);
    try {
      const response = await fetch(httpUrl, {
        headers: { ...headers, ...caller },
        signal: signal ? AbortSignal.any([signal, late]) : late,
      });
      return await handshakeError(response, connectTimeoutMs, this.hasOpened);
    } catch {
      return undefined; // the server does not answer, or the page may not read the response
    }
  }

  /** The URL with `cursor=1` and the session id. A presigned URL stays as it was signed. */
  private async url(): Promise<URL> {
    const { sessionId } = this.options;
    const url = absolute(await provide(this.options.url));
    url.protocol = url.protocol.replace("http", "ws");
    if (isPresigned(url)) return url;
    url.searchParams.set("cursor", "1");
    if (sessionId !== undefined) url.searchParams.set(SESSION, sessionId);
    return url;
  }
}

function isPresigned(url: URL): boolean {
  return url.searchParams.has("X-Amz-Signature");
}

function browserWebSocket(url: string, protocols: string[], headers: Record<string, string>): WebSocketLike {
  if (typeof globalThis.WebSocket !== "function") {
    throw new TypeError("There is no global WebSocket here: give the agent a webSocketFactory, for example with ws.");
  }
  if (Object.keys(headers).length > 0) {
    throw new TypeError("A browser's WebSocket sends no headers: use token and sessionId, or a webSocketFactory.");
  }
  return new globalThis.WebSocket(url, protocols);
}

function base64Url(text: string): string {
  return base64(new TextEncoder().encode(text)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
