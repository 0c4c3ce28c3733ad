/**
 * One open WebSocket: frames in, frames out, and a ping while it is silent.
 *
 * Rule: a socket has one stream at a time, because the server streams the runs of a socket in order. An agent may
 * send commands during a stream. When the socket ends, its stream and its open commands fail.
 */

import type { BaseEvent } from "@ag-ui/client";
import { onAbort } from "./backoff.js";
import { ConnectionDropped, RunRefusedError } from "./errors.js";
import {
  type Command,
  type CommandResult,
  isObject,
  isTerminal,
  parseObject,
  refusal,
  type StreamObserver,
  type StreamRequest,
} from "./transport.js";

/** The part of a WebSocket that the agent uses. The class of browsers has it, and the class of `ws`. */
export interface WebSocketLike {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  /** End the socket without the closing handshake. `ws` has this method, browsers do not. */
  terminate?(): void;
  addEventListener(type: "open" | "error", listener: (event: object) => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number; reason: string }) => void): void;
}

export interface ConnectionOptions {
  /** Time in which a socket must open. Default 30,000. */
  connectTimeoutMs?: number;
  /** Silence after which the agent sends a ping. Default 15,000. */
  pingIntervalMs?: number;
  /** Time in which the server must answer a ping. Default 10,000. */
  pongTimeoutMs?: number;
}

const OPEN = 1;
const TOO_LARGE = 1009;

interface Waiting<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

interface OpenStream extends Waiting<void> {
  observer: StreamObserver;
  /** Frame id of an attach; a run input has none. */
  id: number | undefined;
}

/** A handshake failed. A browser's WebSocket does not say whether the server refused it. */
export class HandshakeFailed extends ConnectionDropped {}

export class Connection {
  /** Called once, when either side ends the socket. */
  onClose = () => {};
  private stream: OpenStream | undefined;
  private readonly commands = new Map<number, Waiting<CommandResult>>();
  private lastId = 0;
  private failure: Error | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;

  private constructor(
    private readonly socket: WebSocketLike,
    private readonly options: ConnectionOptions,
  ) {
    socket.addEventListener("message", ({ data }) => this.receive(data));
    socket.addEventListener("error", () => this.fail(new ConnectionDropped("The socket failed.")));
    socket.addEventListener("close", ({ code, reason }) => this.fail(closed(code, reason)));
    this.awaitFrame();
  }

  /** Wait until `socket` is open. Throws HandshakeFailed, or ConnectionDropped if it does not open in time. */
  static async open(socket: WebSocketLike, options: ConnectionOptions, signal?: AbortSignal): Promise<Connection> {
    const { connectTimeoutMs = 30_000 } = options;
    let stop = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const fail = (message: string) => reject(new HandshakeFailed(message));
        const expire = () => reject(new ConnectionDropped(`The socket did not open within ${connectTimeoutMs} ms.`));
        const timer = setTimeout(expire, connectTimeoutMs);
        const removeListener = signal ? onAbort(signal, () => reject(signal.reason)) : () => {};
        stop = () => {
          clearTimeout(timer);
          removeListener();
        };
        socket.addEventListener("open", () => resolve());
        socket.addEventListener("error", () => fail("The socket did not open."));
        socket.addEventListener("close", ({ code }) => fail(`The socket was closed before it was open (${code}).`));
        if (socket.readyState === OPEN) resolve();
      });
    } catch (error) {
      socket.close();
      throw error;
    } finally {
      stop();
    }
    return new Connection(socket, options);
  }

  get isOpen(): boolean {
    return this.failure === undefined && this.socket.readyState === OPEN;
  }

  get isStreaming(): boolean {
    return this.stream !== undefined;
  }

  /** Deliver a stream up to its run's end. Throws as `Transport.stream`; only a refusal leaves the socket usable. */
  async read(request: StreamRequest, observer: StreamObserver, signal: AbortSignal): Promise<void> {
    const id = "attach" in request ? this.nextId() : undefined;
    let removeListener = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        this.stream = { observer, id, resolve, reject };
        this.send("input" in request ? request.input : { command: { type: "attach", ...request.attach }, id });
        observer.opened((command) => this.command(command));
        removeListener = onAbort(signal, () => this.fail(signal.reason));
      });
    } finally {
      removeListener();
      this.stream = undefined;
    }
  }

  command(command: Command, signal?: AbortSignal): Promise<CommandResult> {
    const id = this.nextId();
    let removeListener = () => {};
    return new Promise<CommandResult>((resolve, reject) => {
      this.commands.set(id, { resolve, reject });
      this.send({ command, id });
      if (signal) removeListener = onAbort(signal, () => reject(signal.reason));
    }).finally(() => {
      removeListener();
      this.commands.delete(id);
    });
  }

  close(): void {
    this.fail(new ConnectionDropped("The agent closed the socket."));
  }

  private nextId(): number {
    this.lastId += 1;
    return this.lastId;
  }

  private send(frame: object): void {
    if (!this.isOpen) {
      this.fail(this.failure ?? new ConnectionDropped("The socket is closed."));
      return;
    }
    this.socket.send(JSON.stringify(frame));
  }

  private receive(data: unknown): void {
    if (this.failure) return;
    this.awaitFrame();
    try {
      const frame = parseObject(String(data));
      if (typeof frame.type === "string") this.deliver(frame as BaseEvent);
      else this.answer(frame);
    } catch (error) {
      this.fail(error);
    }
  }

  private deliver(event: BaseEvent): void {
    const stream = this.stream;
    if (!stream) return;
    stream.observer.event(...withoutSeq(event));
    if (isTerminal(event)) {
      this.stream = undefined;
      stream.resolve();
    }
  }

  /** A control frame. An error that names no command concerns the stream, because nothing else can fail without one. */
  private answer(frame: Record<string, unknown>): void {
    const waiting = typeof frame.id === "number" ? this.commands.get(frame.id) : undefined;
    if (frame.control === "result") waiting?.resolve(frame);
    if (frame.control !== "error") return;
    const error = refusal(frame);
    if (waiting) {
      waiting.reject(error);
    } else if (this.stream && (frame.id === undefined || frame.id === this.stream.id)) {
      this.stream.reject(error);
      this.stream = undefined;
    }
  }

  /** Send a ping after silence, and end the socket if nothing answers. */
  private awaitFrame(): void {
    const { pingIntervalMs = 15_000, pongTimeoutMs = 10_000 } = this.options;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      const unanswered = new ConnectionDropped(`The server did not answer a ping within ${pongTimeoutMs} ms.`);
      this.silence = setTimeout(() => {
        this.fail(unanswered);
        this.socket.terminate?.(); // the closing handshake would not be answered either
      }, pongTimeoutMs);
      this.send({ type: "ping" });
    }, pingIntervalMs);
  }

  private fail(reason: unknown): void {
    if (this.failure) return;
    const error = reason instanceof Error ? reason : new ConnectionDropped(String(reason));
    this.failure = error;
    clearTimeout(this.silence);
    this.stream?.reject(error);
    for (const waiting of this.commands.values()) waiting.reject(error);
    this.socket.close();
    this.onClose();
  }
}

function closed(code: number, reason: string): Error {
  if (code === TOO_LARGE) {
    const message = "A frame is larger than the server or its gateway allows.";
    return new RunRefusedError({ code: "PAYLOAD_TOO_LARGE", message, retryable: false });
  }
  return new ConnectionDropped(`The socket was closed (${code}${reason && `: ${reason}`}).`);
}

/** Split an event into the event as HTTP has it, and the number that `?cursor=1` adds. */
function withoutSeq(event: BaseEvent): [BaseEvent, number | undefined] {
  const { metadata, ...fields } = event as BaseEvent & { metadata?: unknown };
  if (!isObject(metadata) || typeof metadata.seq !== "number") return [event, undefined];
  const { seq, ...others } = metadata;
  const bare = Object.keys(others).length > 0 ? { ...fields, metadata: others } : fields;
  return [bare as BaseEvent, seq as number];
}
