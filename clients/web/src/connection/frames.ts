/**
 * Frames of the connection, for the event log.
 *
 * Rule: the number and the size of frames are bounded. The oldest frames are dropped first.
 */

export interface Frame {
  number: number;
  /** Unix time in milliseconds. */
  at: number;
  /** Milliseconds since the run's input was sent. */
  since: number;
  runId: string;
  direction: "in" | "out";
  type: string;
  text: string;
}

const MAX_FRAMES = 10_000;
const MAX_CHARACTERS = 20_000_000;
/** The type of an event, or of a control frame of a WebSocket. */
const TYPE = /"(?:type": ?"([A-Z_]+)|control": ?"(\w+))"/;

export class FrameLog {
  private frames: Frame[] = [];
  private characters = 0;
  private count = 0;
  private notified = false;
  private readonly listeners = new Set<() => void>();
  private startedAt = Date.now();

  get all(): readonly Frame[] {
    return this.frames;
  }

  get total(): number {
    return this.count;
  }

  add(direction: Frame["direction"], runId: string, text: string, type = typeOf(text)): void {
    const at = Date.now();
    if (direction === "out") this.startedAt = at;
    this.frames.push({ number: ++this.count, at, since: at - this.startedAt, runId, direction, type, text });
    this.characters += text.length;
    if (this.frames.length > MAX_FRAMES * 1.2 || this.characters > MAX_CHARACTERS) this.drop();
    this.notify();
  }

  clear(): void {
    this.frames = [];
    this.characters = 0;
    this.notify();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private drop(): void {
    let from = Math.max(0, this.frames.length - MAX_FRAMES);
    let characters = this.frames.slice(from).reduce((sum, frame) => sum + frame.text.length, 0);
    while (characters > MAX_CHARACTERS && from < this.frames.length - 1) characters -= this.frames[from++]!.text.length;
    this.frames = this.frames.slice(from);
    this.characters = characters;
  }

  private notify(): void {
    if (this.notified) return;
    this.notified = true;
    setTimeout(() => {
      this.notified = false;
      for (const listener of this.listeners) listener();
    }, 100);
  }
}

/** The type of an event, or of a control frame. */
export function typeOf(text: string): string {
  const [, event, control] = TYPE.exec(text) ?? [];
  return event ?? control ?? "FRAME";
}

const PIECE = 65_536;

/**
 * Pass a response on and log each frame of its body.
 *
 * The body is passed in pieces, with a turn of the event loop between them. Otherwise all data that has arrived is read
 * in one task, and a burst of thousands of events would freeze the page.
 */
export function logged(response: Response, onFrame: (text: string) => void): Response {
  if (response.body === null) return response;
  const decoder = new TextDecoder();
  let rest: string[] = [];
  const tap = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      for (let at = 0; at < chunk.length; at += PIECE) {
        controller.enqueue(chunk.subarray(at, at + PIECE));
        await nextTurn();
      }
      const [head = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
      rest.push(head); // a frame of several megabytes comes in many chunks: join it once
      if (lines.length === 0) return;
      const last = lines.pop() ?? "";
      for (const line of [rest.join(""), ...lines]) if (line.startsWith("data: ")) onFrame(line.slice(6));
      rest = [last];
    },
  });
  return new Response(response.body.pipeThrough(tap), { status: response.status, headers: response.headers });
}

/** Wait for a turn of the event loop. A timer would wait for a second in a background tab. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
