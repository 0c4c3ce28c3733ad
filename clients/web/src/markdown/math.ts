/** Formulas as MathML, which browsers draw by themselves. Loaded when the first formula is shown. */

import temml from "temml";

/** Replace the text of an element by the formula. What cannot be read stays as text. */
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
