/**
 * Markdown to safe HTML.
 *
 * Rule: no text of a model runs as code. HTML is sanitised, links are http(s) or mail only, and pictures are shown from
 * data only, because a request to an address would tell that server that the user reads the message.
 */

import DOMPurify, { type Config } from "dompurify";
import { Marked, type Token, type Tokens } from "marked";

const marked = new Marked({
  gfm: true,
  breaks: false,
  extensions: [mathBlock(), mathInline()],
  renderer: { html: ({ text }) => harmless(text) },
});

const HARMLESS =
  /^<\/?(?:b|br|code|del|details|em|hr|i|ins|kbd|li|mark|ol|p|s|small|strong|sub|summary|sup|u|ul) *\/?>$/i;

/** HTML of a model: plain tags without attributes stay tags, and the rest is shown as it was written. */
function harmless(text: string): string {
  return text.replace(/<[^<>]*>|[<>]/g, (tag) => (HARMLESS.test(tag) ? tag : escapeHtml(tag)));
}

const LINK = /^(https?:|mailto:|#)/i;

const CONFIG: Config = {
  ALLOWED_TAGS: [
    ..."a abbr b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i img input ins kbd li mark ol p".split(
      " ",
    ),
    ..."pre q s samp small span strong sub summary sup table tbody td th thead tr u ul".split(" "),
  ],
  ALLOWED_ATTR: [
    "href",
    "title",
    "alt",
    "src",
    "class",
    "start",
    "align",
    "colspan",
    "rowspan",
    "open",
    "type",
    "checked",
    "disabled",
    "data-math",
  ],
  ALLOW_DATA_ATTR: false,
  // Values of these are no addresses, so they are not matched against the pattern below.
  ADD_URI_SAFE_ATTR: ["align", "checked", "colspan", "data-math", "disabled", "open", "rowspan", "start", "type"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|data:image\/(?:png|jpeg|gif|webp);)/i,
  RETURN_DOM_FRAGMENT: true,
};

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    const address = node.getAttribute("href") ?? "";
    if (!LINK.test(address)) node.removeAttribute("href");
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  if (node.tagName === "IMG" && !node.getAttribute("src")?.startsWith("data:image/")) {
    node.replaceWith(
      Object.assign(document.createElement("span"), {
        className: "blocked-image",
        textContent: `${node.getAttribute("alt") || "Picture"} (not loaded from ${hostOf(node.getAttribute("src"))})`,
      }),
    );
  }
  if (node.tagName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove();
});

function hostOf(address: string | null): string {
  return address !== null && URL.canParse(address) ? new URL(address).host : "its address";
}

export function lex(text: string): Token[] {
  return marked.lexer(text);
}

/** Render tokens of the lexer. */
export function render(tokens: Token[]): DocumentFragment {
  return purify.sanitize(marked.parser(tokens), CONFIG) as unknown as DocumentFragment;
}

/** The text of Markdown as it is read aloud. */
export function plainText(text: string): string {
  return (render(lex(text)).textContent ?? "").replace(/\s+/g, " ").trim();
}

// --- math ------------------------------------------------------------------------------------------------------------
// The formula is the text of an element, and `math.ts` replaces that element when it is shown.

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function mathBlock() {
  return {
    name: "mathBlock",
    level: "block" as const,
    start: (text: string) => text.match(/^(\$\$|\\\[)/m)?.index,
    tokenizer(text: string): Tokens.Generic | undefined {
      const match =
        /^\$\$([\s\S]{1,4000}?)\$\$ *(?:\n|$)/.exec(text) ?? /^\\\[([\s\S]{1,4000}?)\\\] *(?:\n|$)/.exec(text);
      return match ? { type: "mathBlock", raw: match[0], text: match[1]!.trim() } : undefined;
    },
    renderer: (token: Tokens.Generic) => `<div class="math" data-math="block">${escapeHtml(token.text)}</div>`,
  };
}

function mathInline() {
  return {
    name: "mathInline",
    level: "inline" as const,
    start: (text: string) => text.match(/\$|\\\(/)?.index,
    tokenizer(text: string): Tokens.Generic | undefined {
      const match =
        /^\$(?=\S)((?:[^$\\\n]|\\.){1,500}?)(?<=\S)\$(?!\d)/.exec(text) ?? /^\\\(([^\n]{1,500}?)\\\)/.exec(text);
      return match ? { type: "mathInline", raw: match[0], text: match[1]!.trim() } : undefined;
    },
    renderer: (token: Tokens.Generic) => `<span class="math" data-math="inline">${escapeHtml(token.text)}</span>`,
  };
}
