/**
 * Files as content parts of messages.
 *
 * Rule: a large file is uploaded once, if the server keeps files. Its message names it by an id, so that its bytes are
 * not sent with each turn. Any other file is in its message.
 */

import { type Command, type CommandResult, isObject } from "./transport.js";

/** The content part of a file, for a message of the user. */
export interface Attachment {
  type: "image" | "audio" | "video" | "document";
  source:
    | { type: "data"; value: string; mimeType: string }
    | { type: "file"; value: string; mimeType: string; provider: string };
  metadata: { filename: string };
}

/** Whatever sends commands to a server. */
export interface CommandSender {
  command(command: Command): Promise<CommandResult>;
}

/** Bytes up to which a file stays in its message. */
const INLINE_BYTES = 65_536;

const MAX_NAME = 200;

const KINDS = { image: "image", audio: "audio", video: "video" } as const;

/** Make the content part of a file. Throws RunRefusedError if the server refuses the file, or as `file` is read. */
export async function attachmentOf(file: File, server: CommandSender): Promise<Attachment> {
  const mimeType = file.type || "application/octet-stream";
  const value = base64(new Uint8Array(await file.arrayBuffer()));
  const type = KINDS[mimeType.split("/")[0] as keyof typeof KINDS] ?? "document";
  const metadata = { filename: file.name };
  if (file.size <= INLINE_BYTES || !(await keepsFiles(server))) {
    return { type, source: { type: "data", value, mimeType }, metadata };
  }
  const name = file.name.slice(-MAX_NAME);
  const { fileId } = await server.command({ type: "files.put", data: value, mimeType, name });
  return { type, source: { type: "file", value: String(fileId), mimeType, provider: "agui" }, metadata };
}

async function keepsFiles(server: CommandSender): Promise<boolean> {
  const { capabilities } = await server.command({ type: "capabilities" });
  const custom = isObject(capabilities) && isObject(capabilities.custom) ? capabilities.custom : {};
  return Array.isArray(custom.commands) && custom.commands.includes("files.put");
}

/** Bytes as base64. They are converted in pieces, because a call has a limited number of arguments. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}
