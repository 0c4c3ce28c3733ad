/** Files and media of a message. Only data is shown, because an address would tell another server that it is read. */

import type { ContentPart, PartSource } from "@ag-ui/core";
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
    return (
      <img class="part-image" src={`data:${source.mimeType};base64,${source.value}`} alt={nameOf(part, "Picture")} />
    );
  }
  return (
    <span class="part-file">
      <Icon name="file" />
      {nameOf(part, describe(part.type, source))}
    </span>
  );
}

function nameOf(part: { metadata?: { filename?: unknown } }, fallback: string): string {
  return typeof part.metadata?.filename === "string" ? part.metadata.filename : fallback;
}

function describe(type: string, source: PartSource): string {
  return source.type === "data" ? `${type} (${source.mimeType})` : `${type} (not loaded)`;
}
