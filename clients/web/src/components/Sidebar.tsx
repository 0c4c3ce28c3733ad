/** The list of threads: begin, search, open, rename, delete. */

import { useState } from "preact/hooks";
import { newThread, selectThread } from "../chat";
import { title } from "../config";
import type { ThreadFacts } from "../connection/api";
import { useStore } from "../store";
import { threads } from "../threads";
import { day } from "./format";
import { Icon, IconButton } from "./icons";
import { ThreadItem } from "./ThreadItem";

export function Sidebar({ onLeave }: { onLeave: () => void }) {
  const list = useStore(threads.list);
  const next = useStore(threads.next);
  const refusal = useStore(threads.refusal);
  const problem = useStore(threads.problem);
  const [query, setQuery] = useState("");
  const found = list.filter((thread) => threads.titleOf(thread).toLowerCase().includes(query.trim().toLowerCase()));
  return (
    <nav class="sidebar" aria-label="Threads">
      <div class="sidebar-head">
        <span class="brand">{title}</span>
        <IconButton icon="close" label="Close threads" class="only-narrow" onClick={onLeave} />
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
          onInput={(event) => {
            setQuery(event.currentTarget.value);
            void threads.all();
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
              {group.map((thread) => (
                <ThreadItem
                  key={thread.threadId}
                  thread={thread}
                  name={threads.titleOf(thread)}
                  onOpen={() => {
                    void selectThread(thread.threadId);
                    onLeave();
                  }}
                />
              ))}
            </ul>
          </section>
        ))}
        {found.length === 0 && (
          <p class="sidebar-note">{refusal || (query === "" ? "Your chats will be here." : "Nothing found.")}</p>
        )}
        {next !== undefined && query === "" && (
          <button type="button" class="quiet-button" onClick={() => void threads.more()}>
            Show more
          </button>
        )}
      </div>
    </nav>
  );
}

function groups(list: readonly ThreadFacts[]): [string, ThreadFacts[]][] {
  const found = new Map<string, ThreadFacts[]>();
  for (const thread of list) {
    const heading = day(thread.changedAt);
    found.set(heading, [...(found.get(heading) ?? []), thread]);
  }
  return [...found];
}
