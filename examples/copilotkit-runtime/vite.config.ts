import react from "@vitejs/plugin-react";
import { type Connect, defineConfig, type Plugin } from "vite";
import { runtimeListener } from "./runtime.ts";

const server = process.env.AGENT_URL ?? "http://localhost:8080";

/** Serve the runtime beside the page. In production it is a server of its own: `createServer(runtimeListener(url))`. */
function copilotRuntime(): Plugin {
  const serve = ({ middlewares }: { middlewares: Connect.Server }) => {
    middlewares.use("/api/copilotkit", runtimeListener(new URL("/invocations", server).href));
  };
  return { name: "copilot-runtime", configureServer: serve, configurePreviewServer: serve };
}

export default defineConfig({ plugins: [react(), copilotRuntime()] });
