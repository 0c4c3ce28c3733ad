/** CopilotKit with its runtime: the page talks to the runtime, and the runtime to the agent server. */

import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { createRoot } from "react-dom/client";
import { Approval, ToolCard } from "./cards";
import "./style.css";
import { ThemeTool } from "./theme-tool";
import { threadId } from "./thread";

function App() {
  return (
    <CopilotKitProvider runtimeUrl="/api/copilotkit" enableInspector={false}>
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
