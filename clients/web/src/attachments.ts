/** Files of the user as AG-UI content parts, and the size of the message that has them. */

import type { ContentPart } from "@ag-ui/core";
import { api } from "./connection/api";
import { loadAgents } from "./connection/transport";
import { remember } from "./stored-files";

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

/** Make files content parts. Large ones are uploaded where the server keeps files. */
export async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const results = await Promise.all(files.map(readFile));
  const refused = results.flatMap((why, at) => (typeof why === "string" ? [{ name: files[at]!.name, why }] : []));
  return { read: results.filter((result) => typeof result !== "string"), refused };
}

/** Return an attachment, or a sentence about why the file is none. A folder cannot be read. */
async function readFile(file: File): Promise<Attachment | string> {
  if (file.size > MAX_BYTES) return `Too large: it has ${size(file.size)}, and a file may have ${size(MAX_BYTES)}.`;
  const preview = await dataAddress(file).catch(() => null);
  if (preview === null) return "It cannot be read. A folder cannot be attached.";
  if (file.size === 0) return "It is empty.";
  try {
    const { attachmentOf } = await loadAgents();
    const part = await attachmentOf(file, api);
    const { type, value, mimeType } = part.source;
    if (type === "file") remember(value, { mimeType, data: preview.slice(preview.indexOf(",") + 1) });
    return { name: file.name, part, preview };
  } catch (error) {
    return (error as Error).message;
  }
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
