/** CopilotKit without its runtime: the page talks to the agent server itself, over WebSocket. */

import { WebSocketAgent } from "@agui-container/client";
import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { Failure, Questions, ToolCard } from "./cards";
import "./style.css";
import { ThemeTool } from "./theme-tool";
import { threadId } from "./thread";

const agents = { default: new WebSocketAgent({ url: new URL("/ws", location.href) }) };

function App() {
  const [failure, setFailure] = useState("");
  const show = ({ error }: { error: Error }) => setFailure(error.message);
  return (
    <CopilotKitProvider selfManagedAgents={agents} enableInspector={false} onError={show}>
      <ToolCard />
      <Questions />
      <ThemeTool />
      <main>
        <CopilotChat threadId={threadId} />
        {failure && <Failure text={failure} close={() => setFailure("")} />}
      </main>
    </CopilotKitProvider>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(<App />);
