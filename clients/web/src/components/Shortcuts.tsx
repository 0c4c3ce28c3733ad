/** The keys of this page. */

import { useLayoutEffect } from "preact/hooks";
import { Dialog } from "./Dialog";

const KEYS: [string, string][] = [
  ["Enter", "Send"],
  ["Shift+Enter", "New line"],
  ["Arrow up", "Edit your last message (in an empty field)"],
  ["Escape", "Close what lies over the chat, or stop the answer"],
  ["/", "Write a message"],
  ["Ctrl+K", "Search threads"],
  ["Ctrl+Shift+O", "New chat"],
  ["Ctrl+I", "Show the inspector"],
  ["?", "Show this"],
];

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="shortcuts">
        {KEYS.map(([key, action]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

type Action = "help" | "inspector" | "search" | "new" | "write" | "close";

/** Do the action of a key. The actions are those of what is shown, also for a key that comes before the next frame. */
export function useShortcuts(actions: Record<Action, () => void>): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const action = shortcut(event);
      if (action === null) return;
      event.preventDefault();
      actions[action]();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

/** The shortcut of a key, if it has one here. Keys that write text count only outside of fields. */
function shortcut(event: KeyboardEvent): Action | null {
  if (event.isComposing) return null; // the key belongs to an input method
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === "k") return "search";
  if (isCommand && event.shiftKey && event.key.toLowerCase() === "o") return "new";
  if (isCommand && event.key === "i" && !event.shiftKey) return "inspector";
  if (event.key === "Escape") return document.querySelector("dialog[open], .user-editor, .rename") ? null : "close";
  const target = event.target as HTMLElement;
  if (isCommand || event.altKey || target.closest("input, textarea, select, [contenteditable]")) return null;
  if (event.key === "/") return "write";
  return event.key === "?" ? "help" : null;
}
