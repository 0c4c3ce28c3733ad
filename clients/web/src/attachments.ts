/** Files of the user as AG-UI content parts. */

import type { ContentPart } from "@ag-ui/core";

export interface Attachment {
  name: string;
  part: ContentPart;
  /** Address of the picture that is shown. */
  preview: string;
}

const MAX_BYTES = 5_000_000;

const KINDS = { image: "image", audio: "audio", video: "video" } as const;

export async function readFiles(files: readonly File[]): Promise<{ read: Attachment[]; refused: string[] }> {
  const attachments = await Promise.all(files.map(readFile));
  const refused = files.filter((_, index) => attachments[index] === null).map((file) => file.name);
  return { read: attachments.filter((attachment) => attachment !== null), refused };
}

export function describeLimit(refused: readonly string[]): string {
  return `Not attached: ${refused.join(", ")}. A file may have at most 5 MB, and must not be empty. A folder cannot be attached.`;
}

/** Return null for a file that is empty, too large, or cannot be read. A folder cannot be read. */
async function readFile(file: File): Promise<Attachment | null> {
  if (file.size === 0 || file.size > MAX_BYTES) return null;
  const address = await dataAddress(file).catch(() => null);
  if (address === null) return null;
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

function dataAddress(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
