/** Files of the user as AG-UI content parts, and the room that a message has for them. */

import type { ContentPart } from "@ag-ui/core";

export interface Attachment {
  name: string;
  part: ContentPart;
  /** Address of the picture that is shown. */
  preview: string;
}

/** A file that is not attached, and why. */
export interface RefusedFile {
  name: string;
  why: string;
}

const MAX_BYTES = 5_000_000;
/** Bytes of an input besides its new message: ids, and the descriptions of the page's tools. */
const REST_BYTES = 5_000;

const KINDS = { image: "image", audio: "audio", video: "video" } as const;

/** Return the content of a message. */
export function contentOf(text: string, attachments: readonly Attachment[]): string | ContentPart[] {
  if (attachments.length === 0) return text;
  const parts: ContentPart[] = attachments.map(({ part }) => part);
  return text === "" ? parts : [...parts, { type: "text", text }];
}

/** Bytes of a message beyond what the server takes with one request; 0 if it fits, or if the server's limit is unknown. */
export function excess(content: string | ContentPart[], limit: number | undefined): number {
  if (limit === undefined) return 0;
  return Math.max(0, sizeOf(content) + REST_BYTES - limit);
}

function sizeOf(content: string | ContentPart[]): number {
  if (typeof content === "string") return new Blob([JSON.stringify(content)]).size;
  const sizes = content.map((part) => {
    if (part.type === "text") return sizeOf(part.text);
    return part.source.value.length + 300; // data is ASCII; the rest is a name and a type
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}

interface ReadFiles {
  read: Attachment[];
  refused: RefusedFile[];
}

/**
 * Read files, as many as there is room for.
 *
 * @param before what is attached already
 * @param limit bytes of a request that the server takes, if they are known
 */
export async function readFiles(
  files: readonly File[],
  before: readonly Attachment[],
  limit: number | undefined,
): Promise<ReadFiles> {
  const results = await Promise.all(files.map(readFile));
  const read: Attachment[] = [];
  const refused: RefusedFile[] = [];
  for (const [index, result] of results.entries()) {
    const { name } = files[index]!;
    if (typeof result === "string") refused.push({ name, why: result });
    else if (excess(contentOf("", [...before, ...read, result]), limit) === 0) read.push(result);
    else
      refused.push({ name, why: `Too large together with the other files: the server takes ${size(limit!)} at once.` });
  }
  return { read, refused };
}

/** Return an attachment, or a sentence about why the file is none. A folder cannot be read. */
async function readFile(file: File): Promise<Attachment | string> {
  if (file.size > MAX_BYTES) return `Too large: it has ${size(file.size)}, and a file may have ${size(MAX_BYTES)}.`;
  const address = await dataAddress(file).catch(() => null);
  if (address === null) return "It cannot be read. A folder cannot be attached.";
  if (file.size === 0) return "It is empty.";
  const mimeType = file.type || "application/octet-stream";
  const kind = KINDS[mimeType.split("/")[0] as keyof typeof KINDS] ?? "document";
  const value = address.slice(address.indexOf(",") + 1);
  const part = {
    type: kind,
    source: { type: "data", value, mimeType },
    metadata: { filename: file.name },
  } as ContentPart;
  return { name: file.name, part, preview: address };
}

/** A number of bytes for people. */
export function size(bytes: number): string {
  return bytes < 100_000 ? `${Math.ceil(bytes / 100) / 10} KB` : `${Math.ceil(bytes / 100_000) / 10} MB`;
}

function dataAddress(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
