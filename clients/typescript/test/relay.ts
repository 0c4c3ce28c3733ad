/** A TCP relay that stands between client and server, counts the events that pass, and cuts connections. */

import { once } from "node:events";
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";

/** How a connection is to end. */
export interface Cut {
  /** Events that reach the client before the cut. */
  after: number;
  /** Bytes of the next event that reach the client too. */
  partial?: number;
}

const HEAD_END = "\r\n\r\n";

export class Relay {
  /** Cuts of the next connections that have events, in order. Other connections are not cut. */
  readonly cuts: Cut[] = [];
  /** Connections so far. */
  connections = 0;
  /** First line and headers of each request, as text. */
  readonly requests: string[] = [];
  /** Whether bytes of the server are held back, as on a dead network. */
  isFrozen = false;
  /** Whether new connections are refused. */
  isDown = false;
  /** Whether what the next connection sends waits for `release()`. */
  holdsNext = false;
  /** Bytes that the server has sent. */
  answered = 0;
  private readonly held: (() => void)[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly listener: Server,
    private readonly target: number,
  ) {
    listener.on("connection", (client) => this.relay(client));
  }

  static async to(target: number): Promise<Relay> {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    return new Relay(listener, target);
  }

  get port(): number {
    const address = this.listener.address();
    if (address === null || typeof address === "string") throw new Error("not listening");
    return address.port;
  }

  /** Open TCP sockets, on both sides. */
  get open(): number {
    return this.sockets.size;
  }

  get http(): string {
    return `http://127.0.0.1:${this.port}/invocations`;
  }

  get ws(): string {
    return `ws://127.0.0.1:${this.port}/ws`;
  }

  /** Cut every connection that is open. */
  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Let the bytes of the connection that is held back pass. */
  release(): void {
    for (const forward of this.held.splice(0)) forward();
  }

  close(): void {
    this.cutAll();
    this.listener.close();
  }

  private relay(client: Socket): void {
    this.connections += 1;
    if (this.isDown) {
      client.destroy();
      return;
    }
    const server = tcpConnect(this.target, "127.0.0.1");
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        this.sockets.delete(socket);
        end();
      });
    }
    const meter = new Meter();
    if (this.holdsNext) {
      this.holdsNext = false;
      client.pause();
      this.held.push(() => client.resume());
    }
    client.on("data", (bytes) => {
      meter.request(bytes, this.requests);
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      this.answered += bytes.length;
      if (this.isFrozen) return;
      this.pass(meter, bytes, client, end);
    });
  }

  /** Forward what comes before the cut. */
  private pass(meter: Meter, bytes: Buffer, client: Socket, end: () => void): void {
    meter.cut ??= meter.carriesRun ? this.cuts.shift() : undefined;
    if (!meter.cut) {
      client.write(bytes);
      return;
    }
    const length = meter.allowed(bytes, meter.cut);
    if (length === undefined) client.write(bytes);
    else client.write(bytes.subarray(0, length), end);
  }
}

/** Where the events of one connection are. */
class Meter {
  cut: Cut | undefined;
  carriesRun = false;
  private isSocket = false;
  private sent = Buffer.alloc(0);

  request(bytes: Buffer, requests: string[]): void {
    const text = bytes.toString("latin1");
    if (/^(GET|POST) /.test(text)) {
      requests.push(text.split(HEAD_END)[0] ?? "");
      this.isSocket = /upgrade: websocket/i.test(text);
    }
    if (this.isSocket ? !/^GET /.test(text) : /"runId"/.test(text)) this.carriesRun = true;
  }

  /** How many of `bytes` come before the cut; undefined for all of them. */
  allowed(bytes: Buffer, cut: Cut): number | undefined {
    const before = this.sent.length;
    this.sent = Buffer.concat([this.sent, bytes]);
    const ends = this.isSocket ? frameEnds(this.sent) : eventEnds(this.sent);
    const end = cut.after === 0 ? 0 : ends[cut.after - 1];
    if (end === undefined) return undefined;
    return Math.max(0, Math.min(bytes.length, end + (cut.partial ?? 0) - before));
  }
}

/** Ends of the SSE frames in a response. */
function eventEnds(bytes: Buffer): number[] {
  const ends: number[] = [];
  for (const match of bytes.toString("latin1").matchAll(/\}\n\n/g)) ends.push(match.index + match[0].length);
  return ends;
}

/** Ends of the WebSocket frames that hold events; frames of the server are not masked. */
function frameEnds(bytes: Buffer): number[] {
  const ends: number[] = [];
  const head = bytes.indexOf(HEAD_END);
  let at = bytes.subarray(0, 4).toString() === "HTTP" ? (head < 0 ? bytes.length : head + HEAD_END.length) : 0;
  while (at + 2 <= bytes.length) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const start = at + 2 + (short === 126 ? 2 : short === 127 ? 8 : 0);
    if (start > bytes.length) break;
    const length =
      short === 126 ? bytes.readUInt16BE(at + 2) : short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short;
    at = start + length;
    if (at <= bytes.length && bytes.subarray(start, start + 7).toString() === '{"type"') ends.push(at);
  }
  return ends;
}
