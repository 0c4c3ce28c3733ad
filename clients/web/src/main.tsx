/** The entry point of the page. */

import { render } from "preact";
import { App } from "./components/App";
import { title } from "./config";
import { loadAgents } from "./connection/transport";
import { loadCapabilities } from "./server";
import { finishSignIn } from "./sign-in";
import { paintTheme } from "./theme";
import { newThread, openThread, refreshThread } from "./thread";
import { threadInAddress, threads } from "./threads";
import "./wire";

paintTheme();
document.title = title;
await finishSignIn();
render(<App />, document.getElementById("app")!);
void threads.refresh();
threads.watch();
void loadCapabilities();
showAddress();
addEventListener("popstate", showAddress);
addEventListener("focus", () => {
  void threads.refresh();
  void refreshThread();
});

/** Load the rest of the program while the user looks at the page. */
(globalThis.requestIdleCallback ?? setTimeout)(() => void loadAgents());

function showAddress(): void {
  const named = threadInAddress();
  if (named === threads.selected.value) return;
  if (named === null) newThread();
  else void openThread(named);
}
