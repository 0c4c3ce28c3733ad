/** The list of threads: begin, search, open, rename, delete. */

import { useEffect, useState } from "preact/hooks";
import { logo, title } from "../config";
import type { ThreadFacts } from "../connection/api";
import { conversations, rootOf } from "../state/branches";
import { useStore } from "../store";
import { newThread, selectThread } from "../thread";
import { threads, titleOf } from "../threads";
import { day } from "./format";
import { Icon, IconButton } from "./icons";
import { SignInButton } from "./SignInButton";
import { ThreadItem } from "./ThreadItem";

interface SidebarProps {
  /** Called when the user goes on to a thread. */
  onLeave: () => void;
  onHide: () => void;
}

export function Sidebar({ onLeave, onHide }: SidebarProps) {
  const list = useStore(threads.list);
  const next = useStore(threads.next);
  const refusal = useStore(threads.refusal);
  const problem = useStore(threads.problem);
  const [query, setQuery] = useState("");
  const words = query.trim().toLowerCase();
  const hits = useStore(threads.found);
  const isSearching = useStore(threads.isSearching);
  useEffect(() => {
    const timer = setTimeout(() => void threads.search(words), words === "" ? 0 : 250);
    return () => clearTimeout(timer);
  }, [words]);
  const open = (threadId: string) => {
    void selectThread(threadId);
    onLeave();
  };
  const found = conversations(words === "" ? list : matching(list, hits ?? [], words));
  return (
    <nav class="sidebar" aria-label="Threads">
      <div class="sidebar-head">
        <span class="brand">
          {logo !== "" && <img src={logo} alt="" />}
          {title}
        </span>
        <IconButton icon="hide" label="Close threads" onClick={onHide} />
      </div>
      <button
        type="button"
        class="new-chat"
        onClick={() => {
          newThread();
          onLeave();
        }}
      >
        <Icon name="plus" />
        New chat
      </button>
      <label class="search">
        <Icon name="search" />
        <input
          type="search"
          id="thread-search"
          placeholder="Search threads"
          aria-label="Search threads"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.isComposing) return; // the key belongs to an input method
            if (event.key === "Enter" && words !== "" && found.length > 0) open(found[0]![0]!.threadId);
            if (event.key === "Escape" && query !== "") {
              event.stopPropagation();
              setQuery("");
            }
          }}
        />
      </label>
      {problem !== "" && (
        <p class="sidebar-problem" role="alert">
          {problem}
        </p>
      )}
      <div class="thread-list">
        {groups(found).map(([heading, group]) => (
          <section key={heading} aria-label={heading}>
            <h2>{heading}</h2>
            <ul>
              {group.map((branches) => (
                <ThreadItem key={rootOf(branches[0]!.threadId)} branches={branches} onOpen={open} />
              ))}
            </ul>
          </section>
        ))}
        {found.length === 0 && !isSearching && (
          <div class="sidebar-note">
            <p>{refusal || (query === "" ? "Your chats will be here." : problem === "" && "Nothing found.")}</p>
            {refusal !== "" && <SignInButton />}
          </div>
        )}
        {isSearching && <p class="sidebar-note">Searching…</p>}
        {next !== undefined && query === "" && (
          <button type="button" class="quiet-button" onClick={() => void threads.more()}>
            Show more
          </button>
        )}
      </div>
    </nav>
  );
}

/** The listed threads with these words in their titles, and what the server has found, the last changed first. */
function matching(list: readonly ThreadFacts[], hits: readonly ThreadFacts[], words: string): ThreadFacts[] {
  const titled = list.filter((thread) => titleOf(thread).toLowerCase().includes(words));
  const all = new Map([...hits, ...titled].map((thread) => [thread.threadId, thread]));
  return [...all.values()].sort((one, other) => other.changedAt - one.changedAt);
}

function groups(list: readonly ThreadFacts[][]): [string, ThreadFacts[][]][] {
  const found = new Map<string, ThreadFacts[][]>();
  for (const branches of list) {
    const heading = day(branches[0]!.changedAt);
    found.set(heading, [...(found.get(heading) ?? []), branches]);
  }
  return [...found];
}
