/** Capabilities of the server, and this page's transport and token. */

import { useEffect } from "preact/hooks";
import { chat, isRunning } from "../chat";
import { session } from "../config";
import { capabilities, loadCapabilities } from "../server";
import { canSignIn } from "../sign-in";
import { useStore } from "../store";
import { threads } from "../threads";
import { token } from "../token";
import { setWire, wire } from "../wire";
import { Fact } from "./RunPanel";
import { SignInButton } from "./SignInButton";

/** Use another token from now on, and load what it may see. */
function enter(value: string): void {
  token.set(value);
  void threads.refresh();
  void loadCapabilities();
}

export function ServerPanel() {
  const known = useStore(capabilities);
  const chosen = useStore(wire);
  const entered = useStore(token);
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
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            autoComplete="off"
            value={entered}
            onChange={({ currentTarget }) => enter(currentTarget.value.trim())}
          />
        </label>
        <SignInButton />
        {canSignIn && entered !== "" && (
          <button type="button" class="button" onClick={() => enter("")}>
            Sign out
          </button>
        )}
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
