/** The tools that this page runs for the assistant. */

import type { Tool } from "@ag-ui/core";
import { setTheme, type Theme } from "./theme";

export const SET_THEME = "set_theme";
export const ASK_PLACE = "ask_place";

export const tools: Tool[] = [
  {
    name: SET_THEME,
    description: "Set the theme of the page that the user is looking at. The user is asked first.",
    parameters: {
      type: "object",
      properties: { theme: { type: "string", enum: ["light", "dark", "system"] } },
      required: ["theme"],
      additionalProperties: false,
    },
  },
  {
    name: ASK_PLACE,
    description: "Ask the user for a place, for example where they are.",
    parameters: {
      type: "object",
      properties: { question: { type: "string", description: "What to ask" } },
      additionalProperties: false,
    },
  },
];

export function isClientTool(name: string): boolean {
  return tools.some((tool) => tool.name === name);
}

/** Run `set_theme`; the text is the result that the assistant reads. Throws an error with a sentence for it. */
export function runSetTheme(argumentsText: string): string {
  const { theme } = JSON.parse(argumentsText || "{}") as { theme?: unknown };
  if (theme !== "light" && theme !== "dark" && theme !== "system") {
    throw new Error("'theme' must be light, dark or system.");
  }
  setTheme(theme satisfies Theme);
  return `The theme is ${theme} now.`;
}
