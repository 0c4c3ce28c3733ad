/** Files and media of a message. Only data is shown, because an address would tell another server that it is read. */

import type { ContentPart, PartSource } from "@ag-ui/core";
import { useState } from "preact/hooks";
import { download } from "./copy";
import { Dialog } from "./Dialog";
import { Icon } from "./icons";

const SAFE_IMAGE = /^image\/(png|jpeg|gif|webp)$/;

export function ContentParts({ parts }: { parts: readonly ContentPart[] }) {
  return (
    <div class="parts">
      {parts.map((part, index) => (
        <Part key={index} part={part} />
      ))}
    </div>
  );
}

function Part({ part }: { part: ContentPart }) {
  if (part.type === "text") return <p class="part-text">{part.text}</p>;
  const { source } = part;
  if (part.type === "image" && source.type === "data" && SAFE_IMAGE.test(source.mimeType)) {
    return <Picture name={nameOf(part, "Picture")} address={`data:${source.mimeType};base64,${source.value}`} />;
  }
  const name = nameOf(part, describe(part.type, source));
  if (source.type !== "data") {
    return (
      <span class="part-file">
        <Icon name="file" />
        {name}
      </span>
    );
  }
  return (
    <button type="button" class="part-file" title="Save" onClick={() => save(name, source.value, source.mimeType)}>
      <Icon name="file" />
      {name}
    </button>
  );
}

/** A picture that opens in its full size. */
function Picture({ name, address }: { name: string; address: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="part-picture" aria-label={`Open ${name}`} onClick={() => setOpen(true)}>
        <img class="part-image" src={address} alt={name} />
      </button>
      {isOpen && (
        <Dialog title={name} isWide onClose={() => setOpen(false)}>
          <img class="dialog-image" src={address} alt={name} />
        </Dialog>
      )}
    </>
  );
}

/** Save a file. It is not opened, because the page of a file would have the rights of this one. */
function save(name: string, base64: string, mimeType: string): void {
  download(
    name,
    Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)),
    mimeType,
  );
}

function nameOf(part: { metadata?: { filename?: unknown } }, fallback: string): string {
  return typeof part.metadata?.filename === "string" ? part.metadata.filename : fallback;
}

function describe(type: string, source: PartSource): string {
  return source.type === "data" ? `${type} (${source.mimeType})` : `${type} (not loaded)`;
}
