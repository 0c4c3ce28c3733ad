/** What the server can do, and how this page talks to it. */

import { useEffect } from "preact/hooks";
import { chat, isRunning } from "../chat";
import { session } from "../config";
import { capabilities, loadCapabilities } from "../server";
import { useStore } from "../store";
import { setWire, wire } from "../wire";
import { Fact } from "./RunPanel";

export function ServerPanel() {
  const known = useStore(capabilities);
  const chosen = useStore(wire);
  const isBusy = useStore(chat, isRunning);
  useEffect(() => void loadCapabilities(), []);
  return (
    <div class="facts">
      <section>
        <h2>Connection</h2>
        <fieldset class="segments" disabled={isBusy}>
          <legend class="visually-hidden">Transport</legend>
          {(["sse", "websocket"] as const).map((each) => (
            <label key={each}>
              <input type="radio" name="wire" checked={chosen === each} onChange={() => setWire(each)} />
              <span>{each === "sse" ? "SSE" : "WebSocket"}</span>
            </label>
          ))}
        </fieldset>
        <dl>
          <Fact name="Session" value={session} isCode />
        </dl>
      </section>
      {known === null ? (
        <p class="panel-empty">The server did not say what it can do.</p>
      ) : (
        <>
          <section>
            <h2>Server</h2>
            <dl>
              <Fact name="Name" value={`${known.identity?.name ?? "unknown"} ${known.identity?.version ?? ""}`} />
              <Fact name="Tools" value={known.tools?.items?.map(({ name }) => name).join(", ") || "none"} />
            </dl>
          </section>
          <section>
            <h2>All capabilities</h2>
            <pre tabIndex={0} role="group" aria-label="Capabilities">
              {JSON.stringify(known, null, 2)}
            </pre>
          </section>
        </>
      )}
    </div>
  );
}
