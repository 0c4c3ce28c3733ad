/** One thread in the list. */

import { useRef, useState } from "preact/hooks";
import { newThread } from "../chat";
import type { ThreadFacts } from "../connection/api";
import { useStore } from "../store";
import { threads } from "../threads";
import { confirmed } from "./Dialog";
import { shortened } from "./format";
import { Icon, IconButton } from "./icons";

interface ThreadItemProps {
  thread: ThreadFacts;
  name: string;
  onOpen: () => void;
}

export function ThreadItem({ thread, name, onOpen }: ThreadItemProps) {
  const isSelected = useStore(threads.selected, (id) => id === thread.threadId);
  const [isRenaming, setRenaming] = useState(false);
  const item = useRef<HTMLLIElement>(null);
  const endRenaming = () => {
    const hasFocus = item.current?.contains(document.activeElement);
    setRenaming(false);
    if (hasFocus) requestAnimationFrame(() => focusThread(item.current));
  };
  if (isRenaming) {
    return (
      <li class="thread" ref={item}>
        <RenameForm thread={thread} name={name} onClose={endRenaming} />
      </li>
    );
  }
  const remove = async () => {
    const title = `Delete “${shortened(name)}”?`;
    if (!(await confirmed(title, "Its messages and its runs are deleted as well.", "Delete"))) return;
    if ((await threads.remove(thread.threadId)) && threads.selected.value === thread.threadId) newThread();
  };
  return (
    <li class={isSelected ? "thread is-selected" : "thread"} ref={item}>
      <button type="button" class="thread-open" aria-current={isSelected ? "page" : undefined} onClick={onOpen}>
        {thread.forkedFrom !== undefined && <Icon name="fork" />}
        <span class="thread-name">{name}</span>
        {thread.activeRunId !== undefined && <span class="spinner" role="img" aria-label="A run is open" />}
        {thread.status === "goals_failed" && (
          <span class="dot" role="img" aria-label="Goals failed" title="Goals failed" />
        )}
      </button>
      <span class="thread-actions">
        <IconButton icon="edit" label={`Rename ${name}`} onClick={() => setRenaming(true)} />
        <IconButton icon="trash" label={`Delete ${name}`} onClick={() => void remove()} />
      </span>
    </li>
  );
}

/** Focus a thread whose field is gone, unless the user has gone on to something else by then. */
function focusThread(item: HTMLLIElement | null): void {
  if (document.activeElement === document.body) item?.querySelector("button")?.focus();
}

function RenameForm({ thread, name, onClose }: { thread: ThreadFacts; name: string; onClose: () => void }) {
  const [draft, setDraft] = useState(name);
  const submit = async (event: Event) => {
    event.preventDefault();
    const isChanged = draft.trim() !== "" && draft !== name;
    if (!isChanged || (await threads.rename(thread.threadId, draft.trim()))) onClose();
  };
  return (
    <form class="rename" onSubmit={submit}>
      <input
        type="text"
        aria-label="Title"
        maxLength={200}
        value={draft}
        ref={(node) => {
          if (node !== null && document.activeElement !== node) node.select();
        }}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && !event.isComposing) onClose();
        }}
        onBlur={onClose}
      />
    </form>
  );
}
