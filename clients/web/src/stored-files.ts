/** Bytes of the files in messages. A file that a message names by an id of this server is loaded once. */

import type { PartSource } from "@ag-ui/core";
import { api, type StoredFile } from "./connection/api";

type Bytes = Pick<StoredFile, "mimeType" | "data">;

const files = new Map<string, Promise<Bytes>>();

/** Keep a file that this page has uploaded. */
export function remember(fileId: string, file: Bytes): void {
  files.set(fileId, Promise.resolve(file));
}

/** False for an address and for the id of another provider, which are not loaded. */
export function isKnown(source: PartSource): boolean {
  return source.type === "data" || (source.type === "file" && source.provider === "agui");
}

/** Return the bytes of a known source. Rejects if the server has no such file, or does not answer. */
export function load(source: PartSource): Promise<Bytes> {
  if (source.type === "data") return Promise.resolve({ mimeType: source.mimeType, data: source.value });
  const known = files.get(source.value);
  if (known !== undefined) return known;
  const loading = api.file(source.value);
  files.set(source.value, loading);
  loading.catch(() => files.delete(source.value)); // the next look asks again
  return loading;
}
