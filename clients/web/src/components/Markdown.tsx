/** A message's text, rendered while it streams. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { render } from "../markdown/render";
import { type MarkdownBlock, MarkdownStream } from "../markdown/stream";
import { copyText } from "./copy";

export function Markdown({ text, isOpen }: { text: string; isOpen: boolean }) {
  const [stream] = useState(() => new MarkdownStream());
  const blocks = stream.update(text, isOpen);
  return (
    <div class={isOpen ? "markdown is-open" : "markdown"}>
      {blocks.map((block, index) => (
        <Block key={block.start} block={block} isLast={isOpen && index === blocks.length - 1} />
      ))}
    </div>
  );
}

function Block({ block, isLast }: { block: MarkdownBlock; isLast: boolean }) {
  const element = useRef<HTMLDivElement>(null);
  const { raw, isPlain } = block;
  useLayoutEffect(() => {
    const node = element.current;
    if (node === null || isPlain) return;
    node.replaceChildren(render(block.tokens));
    if (isLast) return;
    decorate(node);
  }, [raw, isPlain, isLast]);
  return isPlain ? (
    <div class="block plain" key="plain">
      {raw}
    </div>
  ) : (
    <div class="block" ref={element} key="html" />
  );
}

/** Add to a settled block what needs more code: copy buttons, colours, formulas. */
function decorate(node: HTMLElement): void {
  for (const table of node.querySelectorAll("table")) {
    const frame = Object.assign(document.createElement("div"), { className: "table-frame", tabIndex: 0 });
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Table");
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const pre of node.querySelectorAll("pre")) decorateCode(pre);
  const formulas = [...node.querySelectorAll<HTMLElement>("[data-math]")];
  if (formulas.length > 0) {
    void import("../markdown/math").then(({ showMath }) => formulas.forEach(showMath));
  }
}

function decorateCode(pre: HTMLElement): void {
  const code = pre.querySelector("code");
  if (code === null) return;
  const language = /language-([\w+#.-]+)/.exec(code.className)?.[1] ?? "";
  const frame = Object.assign(document.createElement("div"), { className: "code-frame" });
  const bar = Object.assign(document.createElement("div"), { className: "code-bar" });
  const name = Object.assign(document.createElement("span"), { textContent: language || "text" });
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy code");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText((code.textContent ?? "").replace(/\n$/, ""))) ? "Copied" : "Failed";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  bar.append(name, button);
  pre.replaceWith(frame);
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", "Code");
  frame.append(bar, pre);
  if (language) void import("../markdown/highlight").then(({ highlight }) => highlight(code, language));
}
