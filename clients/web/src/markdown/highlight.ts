/** Colours for code. Loaded when the first code block with a language is shown. */

import highlighter from "highlight.js/lib/common";

const MAX_CODE = 50_000;

/** Colour the code in an element, if its language is known. */
export function highlight(code: HTMLElement, language: string): void {
  const text = code.textContent ?? "";
  if (text.length > MAX_CODE || highlighter.getLanguage(language) === undefined) return;
  // The library escapes the code and adds spans with classes.
  code.innerHTML = highlighter.highlight(text, { language, ignoreIllegals: true }).value;
}
