/** The page: threads on the left, the conversation in the middle, the inspector on the right. */

import { useEffect, useState } from "preact/hooks";
import { isRunning, newThread, stop } from "../chat";
import { read, write } from "../config";
import { replay } from "../replay";
import { useStore } from "../store";
import { Announcer } from "./Announcer";
import { Composer } from "./Composer";
import { ConfirmDialog } from "./Dialog";
import { Inspector } from "./Inspector";
import { Messages } from "./Messages";
import { ReplayBar } from "./Replays";
import { Shortcuts } from "./Shortcuts";
import { Sidebar } from "./Sidebar";
import { TopBar } from "./TopBar";

const INSPECTOR_KEY = "agui.inspector";

export function App() {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isInspectorShown, setInspectorShown] = useState(read(INSPECTOR_KEY) === "shown");
  const [isHelpOpen, setHelpOpen] = useState(false);
  const shownReplay = useStore(replay);
  const toggleInspector = (isShown: boolean) => {
    write(INSPECTOR_KEY, isShown ? "shown" : "hidden");
    setInspectorShown(isShown);
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const action = shortcut(event);
      if (action === null) return;
      event.preventDefault();
      if (action === "help") setHelpOpen(true);
      if (action === "inspector") toggleInspector(!isInspectorShown);
      if (action === "search") setMenuOpen(true);
      if (action === "search") requestAnimationFrame(() => document.getElementById("thread-search")?.focus());
      if (action === "new") newThread();
      if (action === "write") document.querySelector<HTMLElement>(".composer textarea")?.focus();
      if (action === "stop") {
        setMenuOpen(false);
        if (isRunning()) stop();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const classes = ["app", isMenuOpen ? "menu-open" : "", isInspectorShown ? "with-inspector" : ""];
  return (
    <div class={classes.filter(Boolean).join(" ")}>
      <Sidebar onLeave={() => setMenuOpen(false)} />
      {isMenuOpen && <div class="scrim" onClick={() => setMenuOpen(false)} aria-hidden="true" />}
      <main class="main">
        <TopBar
          onMenu={() => setMenuOpen(true)}
          onInspector={() => toggleInspector(!isInspectorShown)}
          isInspectorShown={isInspectorShown}
        />
        <Messages replay={shownReplay?.state} />
        <div class="dock">{shownReplay === null ? <Composer /> : <ReplayBar />}</div>
      </main>
      {isInspectorShown && <Inspector onClose={() => toggleInspector(false)} />}
      {isHelpOpen && <Shortcuts onClose={() => setHelpOpen(false)} />}
      <ConfirmDialog />
      <Announcer />
      <div class="drop-hint" aria-hidden="true">
        Drop files to attach them
      </div>
    </div>
  );
}

type Action = "help" | "inspector" | "search" | "new" | "write" | "stop";

/** The shortcut of a key, if it has one here. Keys that write text count only outside of fields. */
function shortcut(event: KeyboardEvent): Action | null {
  if (event.isComposing) return null; // the key belongs to an input method
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === "k") return "search";
  if (isCommand && event.shiftKey && event.key.toLowerCase() === "o") return "new";
  if (isCommand && event.key === "i" && !event.shiftKey) return "inspector";
  if (event.key === "Escape") return document.querySelector("dialog[open], .user-editor, .rename") ? null : "stop";
  const target = event.target as HTMLElement;
  if (isCommand || event.altKey || target.closest("input, textarea, select, [contenteditable]")) return null;
  if (event.key === "/") return "write";
  return event.key === "?" ? "help" : null;
}
