/** A card for each tool call, the question whether a tool may run, and the reason why a run has failed. */

import { useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";

/** Show every tool call of the server: its name, its arguments, and its result once there is one. */
export function ToolCard() {
  useRenderTool({
    name: "*",
    render: ({ name, parameters, result }) => (
      <div className="card" role="group" aria-label={`Tool ${name}`}>
        <b>{name}</b> <code>{JSON.stringify(parameters)}</code>
        <p>{result ?? "…"}</p>
      </div>
    ),
  });
  return null;
}

/** Ask before a tool runs, where the server's AGUI_TOOL_POLICY says so. */
export function Approval() {
  useInterrupt({
    render: ({ interrupt, resolve }) => (
      <div className="card" role="group" aria-label="Approval">
        <p>{interrupt?.message}</p>
        <button type="button" onClick={() => resolve({ approved: true })}>
          Approve
        </button>
        <button type="button" onClick={() => resolve({ approved: false })}>
          Deny
        </button>
      </div>
    ),
  });
  return null;
}

/** Say why a run has failed or was refused, which CopilotKit itself does not show. */
export function Failure({ text, close }: { text: string; close: () => void }) {
  return (
    <div className="card failure" role="alert">
      <p>{text}</p>
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  );
}
