/** A tool that the page runs for the assistant: it sets the theme, and a card in the chat shows that. */

import { useFrontendTool } from "@copilotkit/react-core/v2";
import { z } from "zod";

export function ThemeTool() {
  useFrontendTool({
    name: "set_theme",
    description: "Set the theme of the page.",
    parameters: z.object({ theme: z.enum(["light", "dark"]) }),
    handler: async ({ theme }) => {
      document.documentElement.classList.toggle("dark", theme === "dark");
      return theme;
    },
    render: ({ args, result }) => (
      <div className="card" role="group" aria-label="Tool set_theme">
        <b>Theme</b> {args.theme}
        <p>{result === undefined ? "…" : "This page has set it."}</p>
      </div>
    ),
  });
  return null;
}
