/**
 * The page that draws one diagram, in a frame of the chat page.
 *
 * Rule: the source is text of a model. Mermaid removes what could run or load, and the frame would not let it: it has no
 * origin, no network, and no script but this one.
 */

/** The build puts it before this script. */
declare const mermaid: {
  initialize(config: object): void;
  render(id: string, source: string): Promise<{ svg: string }>;
};

const FONT =
  '"Inter", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
/** `--surface` of the chat page, which is behind the diagram. */
const SURFACE = { light: "#ffffff", dark: "#1e1e21" };
/** Part of its size to which a wide diagram is made smaller before it scrolls. */
const SMALLEST = 0.7;

const root = document.getElementById("diagram")!;
const resized = new ResizeObserver(tellHeight);

addEventListener("message", ({ source, data }) => {
  if (source === parent) draw(data.source, data.isDark).catch(report);
});

async function draw(source: string, isDark: boolean): Promise<void> {
  const scheme = isDark ? "dark" : "light";
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    look: "classic",
    theme: isDark ? "dark" : "default",
    themeVariables: { edgeLabelBackground: SURFACE[scheme] },
    fontFamily: FONT,
  });
  const drawn = await mermaid.render("drawn", source);
  document.documentElement.style.colorScheme = scheme;
  root.innerHTML = drawn.svg;
  const svg = root.querySelector("svg")!;
  svg.style.minWidth = `${Math.round(svg.viewBox.baseVal.width * SMALLEST)}px`;
  if (!svg.hasAttribute("aria-labelledby")) svg.setAttribute("aria-label", "Diagram");
  for (const link of svg.querySelectorAll("a")) removeAddress(link);
  tellHeight(); // an observer sees nothing while the frame is hidden
  resized.observe(root);
}

function tellHeight(): void {
  parent.postMessage({ height: root.offsetHeight }, "*");
}

/** Make a link plain text, because the frame would go to its address. */
function removeAddress(link: Element): void {
  link.removeAttribute("href");
  link.removeAttribute("xlink:href");
}

function report(error: unknown): void {
  parent.postMessage({ problem: error instanceof Error ? error.message : String(error) }, "*");
}
