/** One conversation in the list. It has a thread for each of its branches, the last changed first. */

import { useRef, useState } from "preact/hooks";
import type { ThreadFacts } from "../connection/api";
import { isFork } from "../state/branches";
import { useStore } from "../store";
import { newThread } from "../thread";
import { threads, titleOf } from "../threads";
import { confirmed } from "./Dialog";
import { shortened } from "./format";
import { Icon, IconButton } from "./icons";

interface ThreadItemProps {
  branches: readonly ThreadFacts[];
  onOpen: (threadId: string) => void;
}

export function ThreadItem({ branches, onOpen }: ThreadItemProps) {
  const thread = branches[0]!;
  const name = titleOf(thread);
  const shown = useStore(threads.selected, (id) => branches.find(({ threadId }) => threadId === id)?.threadId);
  const isSelected = shown !== undefined;
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
        <RenameForm branches={branches} name={name} onClose={endRenaming} />
      </li>
    );
  }
  const remove = async () => {
    const title = `Delete “${shortened(name)}”?`;
    const others = branches.length === 1 ? "" : " So are the other versions of its messages.";
    if (!(await confirmed(title, `Its messages and its runs are deleted as well.${others}`, "Delete"))) return;
    const ids = branches.map(({ threadId }) => threadId);
    if ((await threads.remove(ids)) && ids.includes(threads.selected.value ?? "")) newThread();
  };
  return (
    <li class={isSelected ? "thread is-selected" : "thread"} ref={item}>
      <button
        type="button"
        class="thread-open"
        aria-current={isSelected ? "page" : undefined}
        onClick={() => onOpen(shown ?? thread.threadId)}
      >
        {branches.some(isFork) && <Icon name="fork" />}
        <span class="thread-name">{name}</span>
        {branches.some(({ activeRunId }) => activeRunId !== undefined) && (
          <span class="spinner" role="img" aria-label="A run is open" />
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

interface RenameFormProps {
  branches: readonly ThreadFacts[];
  name: string;
  onClose: () => void;
}

function RenameForm({ branches, name, onClose }: RenameFormProps) {
  const [draft, setDraft] = useState(name);
  const submit = async (event: Event) => {
    event.preventDefault();
    const isChanged = draft.trim() !== "" && draft !== name;
    const ids = branches.map(({ threadId }) => threadId);
    if (!isChanged || (await threads.rename(ids, draft.trim()))) onClose();
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
