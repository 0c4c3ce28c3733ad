/** A tool that the page runs for the assistant: it sets the theme, and a card in the chat shows that. */

import { AuiConfig, defineToolkit, type ToolCallMessagePartProps, Tools } from "@assistant-ui/react";

type Theme = { theme: "light" | "dark" };

const toolkit = defineToolkit({
  set_theme: {
    type: "frontend",
    description: "Set the theme of the page.",
    parameters: {
      type: "object",
      properties: { theme: { type: "string", enum: ["light", "dark"] } },
      required: ["theme"],
    },
    execute: async ({ theme }: Theme) => {
      document.documentElement.classList.toggle("dark", theme === "dark");
      return theme;
    },
    render: ThemeCard,
  },
});

export const pageTools = AuiConfig({ tools: Tools({ toolkit }) });

function ThemeCard({ args, result }: ToolCallMessagePartProps<Theme, string>) {
  return (
    <div className="card" role="group" aria-label="Tool set_theme">
      <b>Theme</b> {args.theme}
      <p>{result === undefined ? "…" : "This page has set it."}</p>
    </div>
  );
}
