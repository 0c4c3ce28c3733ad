/**
 * Markdown of a message that streams.
 *
 * Rule: a block is parsed again only while it can still change. All blocks but the last are settled and are not parsed
 * again, so the cost of a delta is that of the last block and not of the message.
 */

import type { Token } from "marked";
import { lex } from "./render";

export interface MarkdownBlock {
  /** Offset of `raw` in the message. */
  start: number;
  raw: string;
  tokens: Token[];
  /** Text that is too long to be parsed while it grows, or at all. */
  isPlain: boolean;
}

const MAX_GROWING = 6_000;
const MAX_BLOCK = 30_000;
const PLAIN_PIECE = 4_000;
const REFERENCE = /^ {0,3}\[[^\]\n]+\]: /m;

export class MarkdownStream {
  private text = "";
  private settled: MarkdownBlock[] = [];
  private settledEnd = 0;

  /** The blocks of a text. Blocks that did not change are the same objects as before. */
  update(text: string, isOpen: boolean): readonly MarkdownBlock[] {
    if (!text.startsWith(this.text.slice(0, 64)) || text.length < this.text.length) this.reset();
    const wasWhole = text === this.text;
    this.text = text;
    if (!isOpen && REFERENCE.test(text) && text.length < MAX_BLOCK) {
      this.reset();
      this.text = text;
    } else if (wasWhole && isOpen && this.settledEnd === text.length) {
      return this.settled;
    }
    const rest = text.slice(this.settledEnd);
    if (isOpen && rest.length > MAX_GROWING && !rest.trimEnd().includes("\n\n")) return this.growPlain(rest);
    const blocks = this.parse(rest);
    if (!isOpen) return [...this.settled, ...blocks];
    const last = blocks.pop();
    for (const block of blocks) this.settle(block);
    return last === undefined ? this.settled : [...this.settled, last];
  }

  private reset(): void {
    this.text = "";
    this.settled = [];
    this.settledEnd = 0;
  }

  private settle(block: MarkdownBlock): void {
    this.settled = [...this.settled, block];
    this.settledEnd = block.start + block.raw.length;
  }

  private parse(rest: string): MarkdownBlock[] {
    const blocks: MarkdownBlock[] = [];
    let start = this.settledEnd;
    if (rest.length > MAX_BLOCK && !rest.includes("\n\n")) return this.plain(rest);
    const tokens = lex(rest) as Token[] & { links: Record<string, unknown> };
    for (const token of tokens) {
      const last = blocks.at(-1);
      if (token.type === "space" && last !== undefined) last.raw += token.raw;
      else
        blocks.push({
          start,
          raw: token.raw,
          tokens: withLinks([token], tokens),
          isPlain: token.raw.length > MAX_BLOCK,
        });
      start += token.raw.length;
    }
    return blocks;
  }

  /** One paragraph without an end: show it as text, in pieces that no longer change. */
  private growPlain(rest: string): readonly MarkdownBlock[] {
    const pieces = this.plain(rest);
    const last = pieces.pop();
    for (const piece of pieces) this.settle(piece);
    return last === undefined ? this.settled : [...this.settled, last];
  }

  private plain(rest: string): MarkdownBlock[] {
    const pieces: MarkdownBlock[] = [];
    for (let at = 0; at < rest.length; ) {
      const space = rest.indexOf(" ", at + PLAIN_PIECE);
      const end = space < 0 || space > at + 2 * PLAIN_PIECE ? Math.min(at + PLAIN_PIECE, rest.length) : space + 1;
      pieces.push({ start: this.settledEnd + at, raw: rest.slice(at, end), tokens: [], isPlain: true });
      at = end;
    }
    return pieces;
  }
}

/** Return tokens with the reference links, which the parser expects as a property. */
function withLinks(tokens: Token[], { links }: { links: Record<string, unknown> }): Token[] {
  return Object.assign(tokens, { links });
}
