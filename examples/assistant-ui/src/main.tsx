/** assistant-ui with the threads, the history and the feedback of the agent server. */

import { AssistantRuntimeProvider } from "@assistant-ui/react";
import { useAgUiRuntime } from "@assistant-ui/react-ag-ui";
import { useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { serverFeedback, serverHistory, ThreadAgent } from "./adapters";
import { Chat, Threads } from "./chat";
import "./style.css";
import { pageTools } from "./theme-tool";
import { useThreadList } from "./thread-list";

/** One thread at a time. It stands in the address, so that a reload shows it again. */
function App() {
  const [threadId, open] = useState(() => location.hash.slice(1) || crypto.randomUUID());
  useEffect(() => history.replaceState(null, "", `#${threadId}`), [threadId]);
  return <Thread key={threadId} threadId={threadId} open={open} />;
}

function Thread({ threadId, open }: { threadId: string; open: (threadId: string) => void }) {
  const agent = useMemo(() => new ThreadAgent({ url: "/invocations", threadId }), [threadId]);
  const threadList = useThreadList(agent, open);
  const adapters = useMemo(() => ({ history: serverHistory(agent), feedback: serverFeedback(agent) }), [agent]);
  const runtime = useAgUiRuntime({ agent, adapters: { ...adapters, threadList } });
  return (
    <AssistantRuntimeProvider runtime={runtime} config={pageTools}>
      <Threads />
      <Chat />
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(<App />);
