/** What stands between the messages: a card for each tool call, and the question whether a tool may run. */

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
