import { ResumableHttpAgent } from "@agui-container/client";
import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";

const agents = { default: new ResumableHttpAgent({ url: "/api/agent" }) };

// The thread stands in the address, so that a reload shows it again.
location.hash ||= crypto.randomUUID();

export default function Chat() {
  return (
    <CopilotKitProvider selfManagedAgents={agents} enableInspector={false}>
      <main style={{ height: "100dvh" }}>
        <CopilotChat threadId={location.hash.slice(1)} />
      </main>
    </CopilotKitProvider>
  );
}
