/** Formulas as MathML, which browsers render without a library. Loaded when the first formula is shown. */

import temml from "temml";

/** Replace the text of an element by the formula. A formula with a syntax error stays as text. */
export function showMath(element: HTMLElement): void {
  const source = element.textContent ?? "";
  try {
    temml.render(source, element, {
      displayMode: element.dataset.math === "block",
      throwOnError: true,
      trust: false,
      maxExpand: 200,
      maxSize: [20, 60],
    });
  } catch {
    element.textContent = source;
    element.classList.add("math-source");
  }
}
