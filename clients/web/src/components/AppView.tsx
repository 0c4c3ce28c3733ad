/** An MCP App in its frame, which has an origin of its own and no network, and the questions that the app leads to. */

import type { ActivityMessage, Interrupt, ResumeEntry } from "@ag-ui/core";
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type AppPage, type AppSource, type Ask, forward, readPage } from "../apps/resource";
import { type AppCall, type AppHost, AppSession } from "../apps/session";
import { send } from "../chat";
import { fieldsOf } from "../state/custom";
import { useStore } from "../store";
import { theme } from "../theme";
import { confirmed } from "./Dialog";
import { InterruptCard, ReadOnly } from "./Interrupts";
import { Icon } from "./icons";
import { useMedia } from "./media";

/** Heights that an app may ask for. */
const LEAST_PIXELS = 60;
const MOST_PIXELS = 1200;

/** The type of activities that are apps. */
export const MCP_APPS = "mcp-apps";

export function AppView({ message }: { message: ActivityMessage }) {
  const isReadOnly = useContext(ReadOnly);
  const { resourceUri, serverId, serverHash, toolInput, result } = message.content;
  const source = useMemo(
    () => ({ resourceUri: String(resourceUri), serverId, serverHash }),
    [resourceUri, serverId, serverHash],
  );
  const call = useMemo(() => ({ toolInput: fieldsOf(toolInput), result: fieldsOf(result) }), [toolInput, result]);
  const name = `App of ${serverId ?? "a tool"}`;
  return (
    <section class="app-view" aria-label={name}>
      {isReadOnly ? <p class="notice">{name}</p> : <LoadedApp source={source} call={call} name={name} />}
    </section>
  );
}

interface AppProps {
  source: AppSource;
  call: AppCall;
  name: string;
}

/** The app once its page is there, or why there is none. */
function LoadedApp({ source, call, name }: AppProps) {
  const [page, setPage] = useState<AppPage | null>(null);
  const [error, setError] = useState("");
  const [attempts, setAttempts] = useState(0);
  const [questions, ask] = useQuestions();
  useEffect(() => {
    let isCurrent = true;
    setError("");
    readPage(source, ask).then(
      (read) => isCurrent && setPage(read),
      (failure: Error) => isCurrent && setError(failure.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [source, attempts]);
  return (
    <>
      {questions}
      {page !== null && <AppFrame source={source} call={call} name={name} page={page} ask={ask} />}
      {error !== "" && (
        <div class="failure" role="alert">
          <Icon name="alert" />
          <p>{`The app could not be loaded. ${error}`}</p>
          <button type="button" class="button" onClick={() => setAttempts(attempts + 1)}>
            Load again
          </button>
        </div>
      )}
    </>
  );
}

function AppFrame({ source, call, name, page, ask }: AppProps & { page: AppPage; ask: Ask }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(LEAST_PIXELS);
  const shown = useShownTheme();
  const session = useMemo(() => {
    const host: AppHost = {
      send: (message) => frame.current?.contentWindow?.postMessage(message, "*"), // the frame's origin has no name
      forward: (method, params) => forward(source, method, params, ask),
      resize: (pixels) => setHeight(Math.min(MOST_PIXELS, Math.max(LEAST_PIXELS, Math.ceil(pixels)))),
      say: async (text) => {
        const isAllowed = await confirmed("Send this message of the app?", text, "Send");
        if (isAllowed) void send(text);
        return isAllowed;
      },
      openLink: async (address) => {
        const isAllowed = await confirmed("Open this address for the app?", address, "Open");
        if (isAllowed) open(address, "_blank", "noopener,noreferrer");
        return isAllowed;
      },
    };
    return new AppSession(host, call, contextOf(shown));
  }, [source, page]);
  useLayoutEffect(() => {
    const receive = ({ source, data }: MessageEvent) => {
      if (source === frame.current?.contentWindow) void session.receive(data);
    };
    addEventListener("message", receive);
    return () => removeEventListener("message", receive);
  }, [session]);
  useEffect(() => session.show(call), [session, call]);
  useEffect(() => session.change({ theme: shown }), [session, shown]);
  const isWritten = useRef(false);
  const write = () => {
    if (isWritten.current) return; // the app has loaded, or has left its page
    isWritten.current = true;
    frame.current?.contentWindow?.postMessage({ html: page.html }, "*");
  };
  return (
    <iframe
      ref={frame}
      class={page.hasBorder ? "app-frame has-border" : "app-frame"}
      title={name}
      src={page.frame}
      sandbox="allow-scripts allow-forms"
      referrerpolicy="no-referrer"
      style={{ height: `${height}px` }}
      onLoad={write}
    />
  );
}

function contextOf(theme: string) {
  return {
    theme,
    platform: "web",
    displayMode: "inline",
    availableDisplayModes: ["inline"],
    containerDimensions: { maxHeight: MOST_PIXELS },
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
}

function useShownTheme(): "light" | "dark" {
  const chosen = useStore(theme);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  return chosen === "system" ? (isDark ? "dark" : "light") : chosen;
}

/** The cards of questions about what an app has asked for, and the function that asks them. */
function useQuestions(): [ComponentChildren, Ask] {
  const [open, setOpen] = useState<OpenQuestions | null>(null);
  const ask: Ask = (interrupts) => new Promise((resolve) => setOpen({ interrupts, answers: [], resolve }));
  if (open === null) return [null, ask];
  const answer = (entry: ResumeEntry) => {
    const answers = [...open.answers, entry];
    const isDone = answers.length === open.interrupts.length;
    if (isDone) open.resolve(answers);
    setOpen(isDone ? null : { ...open, answers });
  };
  const cards = open.interrupts
    .filter(({ id }) => open.answers.every(({ interruptId }) => interruptId !== id))
    .map((each) => (
      <InterruptCard key={each.id} interrupt={each} onAnswer={(entry) => answer({ interruptId: each.id, ...entry })} />
    ));
  return [cards, ask];
}

interface OpenQuestions {
  interrupts: readonly Interrupt[];
  answers: readonly ResumeEntry[];
  resolve: (answers: ResumeEntry[]) => void;
}
