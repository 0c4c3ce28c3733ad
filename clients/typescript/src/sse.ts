/** Server-Sent Events of a response body. */

import { AgentClientError, ConnectionDropped } from "./errors.js";

export interface ServerSentEvent {
  /** The value of `id:`, if the frame has one. */
  id: string | undefined;
  /** The lines of `data:`, joined. */
  data: string;
}

/** Characters that may wait for the end of their frame. */
const MAX_FRAME = 16_000_000;

/**
 * Read the frames of `body`. Comments are skipped, and a frame that is cut off at the end is dropped.
 *
 * @param silenceTimeoutMs how long the body may be silent. A comment of the server ends a silence.
 * @throws ConnectionDropped if the body breaks off or is silent for too long.
 */
export async function* serverSentEvents(
  body: ReadableStream<Uint8Array>,
  silenceTimeoutMs: number,
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new FrameParser();
  try {
    for (;;) {
      const chunk = await readWithin(reader, silenceTimeoutMs);
      if (chunk === undefined) return;
      yield* parser.parse(decoder.decode(chunk, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {}); // the stream has failed already
  }
}

/** Splits text into frames. A frame may come in many chunks, so each character is searched and joined once. */
class FrameParser {
  /** Pieces of the line that has not ended yet. */
  private pieces: string[] = [];
  private lines: string[] = [];
  private characters = 0;

  *parse(text: string): Generator<ServerSentEvent> {
    const [head = "", ...others] = text.split("\n");
    this.add(head);
    for (const piece of others) {
      yield* this.endLine();
      this.add(piece);
    }
    if (this.characters > MAX_FRAME) throw new AgentClientError(`A frame has more than ${MAX_FRAME} characters.`);
  }

  private add(piece: string): void {
    this.pieces.push(piece);
    this.characters += piece.length;
  }

  /** End a line. An empty one ends its frame. */
  private *endLine(): Generator<ServerSentEvent> {
    const line = this.pieces.join("");
    this.pieces = [];
    if (line !== "" && line !== "\r") {
      this.lines.push(line.endsWith("\r") ? line.slice(0, -1) : line);
      return;
    }
    yield* parseFrame(this.lines);
    this.lines = [];
    this.characters = 0;
  }
}

function* parseFrame(lines: readonly string[]): Generator<ServerSentEvent> {
  let id: string | undefined;
  const data: string[] = [];
  for (const line of lines) {
    if (line.startsWith("id:")) id = fieldValue(line);
    if (line.startsWith("data:")) data.push(fieldValue(line));
  }
  if (data.length > 0) yield { id, data: data.join("\n") };
}

/** The value of a line. A pattern with `.` would not match U+2028 and U+2029, which JSON may have. */
function fieldValue(line: string): string {
  const value = line.slice(line.indexOf(":") + 1);
  return value.startsWith(" ") ? value.slice(1) : value;
}

async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silenceTimeoutMs: number,
): Promise<Uint8Array | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    const fail = () => reject(new ConnectionDropped(`The server was silent for ${silenceTimeoutMs} ms.`));
    timer = setTimeout(fail, silenceTimeoutMs);
  });
  try {
    const { value } = await Promise.race([reader.read(), silence]);
    return value;
  } catch (error) {
    if (error instanceof ConnectionDropped) throw error;
    throw new ConnectionDropped("The response broke off.", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
