/** Files and media of a message. An address is not loaded, because it would tell another server that it is read. */

import type { ContentPart, PartSource } from "@ag-ui/core";
import { useEffect, useState } from "preact/hooks";
import { failureOf, problem } from "../chat";
import { isKnown, load } from "../stored-files";
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

type Media = Exclude<ContentPart, { type: "text" }>;

function Part({ part }: { part: ContentPart }) {
  return part.type === "text" ? <p class="part-text">{part.text}</p> : <MediaPart part={part} />;
}

function MediaPart({ part }: { part: Media }) {
  const address = usePicture(part);
  if (address !== null) return <Picture name={nameOf(part, "Picture")} address={address} />;
  const name = nameOf(part, describe(part));
  const label = (
    <>
      <Icon name="file" />
      {name}
    </>
  );
  if (!isKnown(part.source)) return <span class="part-file">{label}</span>;
  return (
    <button type="button" class="part-file" title="Save" onClick={() => void save(name, part.source)}>
      {label}
    </button>
  );
}

/** The address of a picture that may be shown; null for any other file and for a picture that is not loaded. */
function usePicture({ type, source }: Media): string | null {
  const inline = source.type === "data" ? pictureOf(source.mimeType, source.value) : null;
  const [loaded, setLoaded] = useState<string | null>(null);
  useEffect(() => {
    if (type !== "image" || source.type !== "file" || !isKnown(source)) return;
    load(source).then(
      ({ mimeType, data }) => setLoaded(pictureOf(mimeType, data)),
      () => undefined, // its name is shown
    );
  }, [type, source.value]);
  return type === "image" ? (inline ?? loaded) : null;
}

function pictureOf(mimeType: string, data: string): string | null {
  return SAFE_IMAGE.test(mimeType) ? `data:${mimeType};base64,${data}` : null;
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
async function save(name: string, source: PartSource): Promise<void> {
  try {
    const { mimeType, data } = await load(source);
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    download(name, bytes, mimeType);
  } catch (error) {
    problem.set(failureOf(error));
  }
}

function nameOf({ metadata }: Media, fallback: string): string {
  const { filename } = (metadata ?? {}) as { filename?: unknown };
  return typeof filename === "string" ? filename : fallback;
}

function describe({ type, source }: Media): string {
  return isKnown(source) && source.mimeType ? `${type} (${source.mimeType})` : `${type} (not loaded)`;
}
