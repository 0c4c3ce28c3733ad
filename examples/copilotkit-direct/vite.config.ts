import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.AGENT_URL ?? "http://localhost:8080";

// The page and the agent server share an origin, so the server needs no AGUI_CORS_ORIGINS. `vite preview` does the same.
export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/ws": { target: server, ws: true } } },
});
