/** CopilotKit without its runtime: the page talks to the agent server itself, over WebSocket. */

import { WebSocketAgent } from "@agui-container/client";
import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { createRoot } from "react-dom/client";
import { Approval, ToolCard } from "./cards";
import "./style.css";
import { ThemeTool } from "./theme-tool";
import { threadId } from "./thread";

const agents = { default: new WebSocketAgent({ url: new URL("/ws", location.href) }) };

function App() {
  return (
    <CopilotKitProvider selfManagedAgents={agents} enableInspector={false}>
      <ToolCard />
      <Approval />
      <ThemeTool />
      <main>
        <CopilotChat threadId={threadId} />
      </main>
    </CopilotKitProvider>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(<App />);
