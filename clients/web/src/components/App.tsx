/** The page: threads on the left, the conversation in the middle, the inspector on the right. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { isRunning, stop } from "../chat";
import { read, write } from "../config";
import { replay } from "../replay";
import { useStore } from "../store";
import { newThread } from "../thread";
import { Announcer } from "./Announcer";
import { Composer, focusComposer } from "./Composer";
import { ConfirmDialog } from "./Dialog";
import { useFocusReturn } from "./focus";
import { Inspector } from "./Inspector";
import { Messages } from "./Messages";
import { INSPECTOR_OVER, THREADS_OVER, useMedia } from "./media";
import { ReplayBar } from "./Replays";
import { Shortcuts, useShortcuts } from "./Shortcuts";
import { Sidebar } from "./Sidebar";
import { TopBar } from "./TopBar";

const INSPECTOR_KEY = "agui.inspector";
const SIDEBAR_KEY = "agui.sidebar";

export function App() {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isInspectorShown, setInspectorShown] = useState(read(INSPECTOR_KEY) === "shown");
  const [isSidebarHidden, setSidebarHidden] = useState(read(SIDEBAR_KEY) === "hidden");
  const [isHelpOpen, setHelpOpen] = useState(false);
  const isNarrow = useMedia(THREADS_OVER);
  const isDrawerOpen = isNarrow && isMenuOpen;
  const isInspectorOver = useMedia(INSPECTOR_OVER) && isInspectorShown;
  const shownReplay = useStore(replay);
  const toggleInspector = (isShown: boolean) => {
    write(INSPECTOR_KEY, isShown ? "shown" : "hidden");
    setInspectorShown(isShown);
  };
  const hideSidebar = (isHidden: boolean) => {
    write(SIDEBAR_KEY, isHidden ? "hidden" : "shown");
    setSidebarHidden(isHidden);
  };
  useFocusReturn(isDrawerOpen, ".sidebar");
  useFocusReturn(isInspectorShown, ".inspector");
  useLayoutEffect(() => {
    if (isDrawerOpen) document.querySelector<HTMLElement>(".sidebar button")?.focus();
  }, [isDrawerOpen]);
  useEffect(() => {
    if (isInspectorOver && shownReplay !== null) toggleInspector(false); // it would hide the replay
  }, [shownReplay?.events]);
  useShortcuts({
    help: () => setHelpOpen(true),
    inspector: () => toggleInspector(!isInspectorShown),
    search: () => {
      if (!isNarrow && !isSidebarHidden) return focusSearch();
      if (isNarrow) setMenuOpen(true);
      else hideSidebar(false);
      requestAnimationFrame(focusSearch); // the drawer is shown by then
    },
    new: () => {
      newThread();
      setMenuOpen(false);
    },
    write: focusComposer,
    close: () => {
      if (isDrawerOpen) setMenuOpen(false);
      else if (isInspectorOver) toggleInspector(false);
      else if (isRunning()) stop();
    },
  });
  const classes = [
    "app",
    isDrawerOpen ? "menu-open" : "",
    isInspectorShown ? "with-inspector" : "",
    isSidebarHidden && !isNarrow ? "without-sidebar" : "",
  ];
  return (
    <div class={classes.filter(Boolean).join(" ")}>
      <Sidebar onLeave={() => setMenuOpen(false)} onHide={() => (isNarrow ? setMenuOpen(false) : hideSidebar(true))} />
      {isDrawerOpen && <div class="scrim" onClick={() => setMenuOpen(false)} aria-hidden="true" />}
      {isInspectorOver && <div class="scrim" onClick={() => toggleInspector(false)} aria-hidden="true" />}
      <main class="main" inert={isDrawerOpen || isInspectorOver}>
        <TopBar
          hasMenu={isNarrow || isSidebarHidden}
          onMenu={() => (isNarrow ? setMenuOpen(true) : hideSidebar(false))}
          onInspector={() => toggleInspector(!isInspectorShown)}
          isInspectorShown={isInspectorShown}
        />
        <Messages replay={shownReplay?.state} />
        <div class="dock">{shownReplay === null ? <Composer /> : <ReplayBar />}</div>
      </main>
      {isInspectorShown && <Inspector isInert={isDrawerOpen} onClose={() => toggleInspector(false)} />}
      {isHelpOpen && <Shortcuts onClose={() => setHelpOpen(false)} />}
      <ConfirmDialog />
      <Announcer />
      <div class="drop-hint" aria-hidden="true">
        Drop files to attach them
      </div>
    </div>
  );
}

function focusSearch(): void {
  document.getElementById("thread-search")?.focus();
}
