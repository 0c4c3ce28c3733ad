/**
 * Diagrams of Mermaid, each drawn in a frame by the page of `src/diagram`.
 *
 * Rule: the source is text of a model, so the frame is a sandbox without an origin. It gets the source and the theme. A
 * height, or a reason why nothing is drawn, is all that is taken from it.
 */

import { endpoint } from "../config";
import { isDark, watchTheme } from "../theme";

const MAX_HEIGHT = 1_600;
const MAX_REASON = 200;
const PATIENCE_MS = 5_000;

/** Draw the source of a code block in the block's place, until the signal. Without a diagram the code stays. */
export function showDiagram(block: HTMLElement, bar: HTMLElement, source: string, signal: AbortSignal): void {
  const frame = createFrame();
  const note = Object.assign(document.createElement("p"), { className: "code-note", hidden: true });
  const toggle = createToggle(block);
  let patience = 0;
  const draw = () => frame.contentWindow?.postMessage({ source, isDark: isDark() }, "*");
  const show = (height: number) => {
    frame.height = String(Math.min(Math.ceil(height), MAX_HEIGHT));
    note.hidden = true;
    if (toggle.parentNode !== null) return;
    bar.children[0]!.after(toggle);
    toggle.click();
  };
  const explain = (reason: string) => {
    note.textContent = `The diagram is not drawn: ${reason}`;
    note.hidden = false;
  };
  frame.addEventListener("load", () => {
    draw();
    patience = setTimeout(explain, PATIENCE_MS, "its page does not answer.");
  });
  const read = ({ source: sender, data }: MessageEvent) => {
    if (sender !== frame.contentWindow) return;
    clearTimeout(patience);
    if (data?.height > 0) show(Number(data.height));
    else explain(firstLine(String(data?.problem)));
  };
  addEventListener("message", read, { signal });
  watchTheme(draw, signal);
  bar.after(note);
  block.append(frame);
}

function createFrame(): HTMLIFrameElement {
  const frame = Object.assign(document.createElement("iframe"), { className: "diagram", title: "Diagram" });
  frame.setAttribute("sandbox", "allow-scripts");
  frame.loading = "lazy"; // each frame loads Mermaid
  frame.src = endpoint("console/diagram.html");
  return frame;
}

function createToggle(block: HTMLElement): HTMLButtonElement {
  const toggle = Object.assign(document.createElement("button"), { type: "button" });
  toggle.addEventListener("click", () => {
    toggle.textContent = block.classList.toggle("shows-diagram") ? "Show source" : "Show diagram";
  });
  return toggle;
}

function firstLine(message: string): string {
  const line = message.split("\n", 1)[0] ?? "";
  return `${line.slice(0, MAX_REASON).replace(/[:.\s]+$/, "")}.`;
}
