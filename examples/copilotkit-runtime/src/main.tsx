/** CopilotKit with its runtime: the page talks to the runtime, and the runtime to the agent server. */

import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { Failure, Questions, ToolCard } from "./cards";
import "./style.css";
import { ThemeTool } from "./theme-tool";
import { threadId } from "./thread";

function App() {
  const [failure, setFailure] = useState("");
  const show = ({ error }: { error: Error }) => setFailure(error.message);
  return (
    <CopilotKitProvider runtimeUrl="/api/copilotkit" enableInspector={false} onError={show}>
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
