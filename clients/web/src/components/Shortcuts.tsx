/** The keys of this page. */

import { Dialog } from "./Dialog";

const KEYS: [string, string][] = [
  ["Enter", "Send"],
  ["Shift+Enter", "New line"],
  ["Arrow up", "Edit your last message (in an empty field)"],
  ["Escape", "Stop the answer, or close"],
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
