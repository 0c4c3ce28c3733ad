/** The shared state as a tree. Changes of the last event are marked. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { chat } from "../chat";
import { escapePointer } from "../state/changes";
import { useStore } from "../store";
import { Icon } from "./icons";

const PAGE = 100;

export function StatePanel() {
  const { value, changed } = useStore(chat, (state) => state.shared);
  const marked = useMemo(() => withParents(changed), [changed]);
  if (value === undefined || value === null) return <p class="panel-empty">This thread has no state.</p>;
  return (
    <div class="state-panel">
      <ul class="tree" aria-label="State">
        <Node name="state" value={value} path="" marked={marked} depth={0} />
      </ul>
    </div>
  );
}

/** Each changed path, and as `inside` every path that leads to one. */
function withParents(changed: readonly string[]): Map<string, "changed" | "inside"> {
  const marked = new Map<string, "changed" | "inside">();
  for (const path of changed) {
    for (let end = path.lastIndexOf("/"); end >= 0; end = path.lastIndexOf("/", end - 1)) {
      const parent = path.slice(0, end);
      if (!marked.has(parent)) marked.set(parent, "inside");
      if (end === 0) break;
    }
  }
  for (const path of changed) marked.set(path, "changed");
  return marked;
}

interface NodeProps {
  name: string;
  value: unknown;
  path: string;
  marked: Map<string, "changed" | "inside">;
  depth: number;
}

function Node({ name, value, path, marked, depth }: NodeProps) {
  const mark = marked.get(path);
  const isContainer = typeof value === "object" && value !== null;
  const [isOpen, setOpen] = useState(depth < 1);
  const [shown, setShown] = useState(PAGE);
  useEffect(() => {
    if (mark === "inside") setOpen(true);
  }, [mark, marked]);
  if (!isContainer) {
    return (
      <li class={`node ${mark === "changed" ? "is-changed" : ""}`}>
        <span class="node-name">{name}</span>
        <span class={`node-value value-${value === null ? "null" : typeof value}`}>{short(value)}</span>
      </li>
    );
  }
  const keys = Object.keys(value);
  const isList = Array.isArray(value);
  return (
    <li class={`node ${mark === "changed" ? "is-changed" : ""}`}>
      <button type="button" class="node-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" />
        <span class="node-name">{name}</span>
        <span class="node-size">{isList ? `[${keys.length}]` : `{${keys.length}}`}</span>
      </button>
      {isOpen && (
        <ul>
          {keys.slice(0, shown).map((key, index) => (
            <Node
              key={key}
              name={key}
              value={(value as Record<string, unknown>)[key]}
              path={
                isList && index === keys.length - 1 && marked.has(`${path}/-`)
                  ? `${path}/-`
                  : `${path}/${escapePointer(key)}`
              }
              marked={marked}
              depth={depth + 1}
            />
          ))}
          {keys.length > shown && (
            <li>
              <button type="button" class="quiet-button" onClick={() => setShown(shown + PAGE)}>
                {keys.length - shown} more
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  );
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
