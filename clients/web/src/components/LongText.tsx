/** A text that may have megabytes: its beginning, how much more there is, and a button that copies all of it. */

import { copyText } from "./copy";
import { count, pretty } from "./format";
import { IconButton } from "./icons";

interface LongTextProps {
  text: string;
  label: string;
  /** Number of characters that are shown. */
  limit: number;
  isRaw?: boolean;
}

export function LongText({ text, label, limit, isRaw = false }: LongTextProps) {
  const hidden = text.length - limit;
  return (
    <>
      <pre tabIndex={0} role="group" aria-label={label}>
        {hidden > 0 ? text.slice(0, limit) : isRaw ? text : pretty(text)}
      </pre>
      {hidden > 0 && (
        <p class="panel-note">
          {count(hidden)} more characters
          <IconButton icon="copy" label={`Copy the whole ${label.toLowerCase()}`} onClick={() => void copyText(text)} />
        </p>
      )}
    </>
  );
}
