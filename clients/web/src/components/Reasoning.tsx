/** The model's reasoning, open while it streams and folded afterwards. */

import { useEffect, useState } from "preact/hooks";
import { duration } from "./format";
import { Icon } from "./icons";

/** Less time is not worth a number. */
const SHORTEST_MS = 100;

interface ReasoningProps {
  text: string;
  isOpen: boolean;
  time: { start: number; end?: number } | undefined;
}

export function Reasoning({ text, isOpen, time }: ReasoningProps) {
  const [isUnfolded, setUnfolded] = useState(isOpen);
  useEffect(() => setUnfolded(isOpen), [isOpen]);
  const milliseconds = time?.end === undefined ? 0 : time.end - time.start;
  const took = milliseconds < SHORTEST_MS ? "" : ` for ${duration(milliseconds)}`;
  return (
    <details
      class="reasoning"
      open={isUnfolded}
      onToggle={(event) => setUnfolded((event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>
        <Icon name="spark" />
        <span>{isOpen ? "Thinking…" : `Thought${took}`}</span>
        <Icon name="chevron" />
      </summary>
      <p class="reasoning-text">{text}</p>
    </details>
  );
}
