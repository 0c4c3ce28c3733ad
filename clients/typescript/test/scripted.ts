/** A server that answers each request as a test says, over HTTP and over WebSocket. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { BaseEvent } from "@ag-ui/client";
import { WebSocketServer } from "ws";
import { isObject } from "../src/transport.js";
import type { Endpoints } from "./agents.js";

/** Numbered events, the result of a command, or a refusal. */
export type Answer =
  | { events: [number, BaseEvent][] }
  | { result: object }
  | { refusal: { code: string; message: string; retryable: boolean } };

export type Script = (request: Record<string, unknown>) => Answer;

/** Use a server that answers as `script` says, and close it whatever happens. */
export async function withScript(script: Script, use: (server: Endpoints) => Promise<void>): Promise<void> {
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const answer = script(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead("refusal" in answer ? 503 : 200).end(httpFrames(answer).join(""));
  });
  const sockets = new WebSocketServer({ server, path: "/ws" });
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const frame: unknown = JSON.parse(String(data));
      if (isObject(frame)) for (const text of socketFrames(frame, script(frame))) socket.send(text);
    });
  });
  const port = await listen(server);
  try {
    await use({ http: `http://127.0.0.1:${port}/invocations`, ws: `ws://127.0.0.1:${port}/ws` });
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  }
}

/** Let a server listen on a free port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

function httpFrames(answer: Answer): string[] {
  if ("events" in answer) return answer.events.map(([seq, event]) => `id: ${seq}\n${dataLine(event)}`);
  if ("result" in answer) return [dataLine({ type: "CUSTOM", name: "result", value: answer.result })];
  const { code, message, retryable } = answer.refusal;
  return [dataLine({ type: "RUN_ERROR", code, message, metadata: { retryable } })];
}

function dataLine(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function socketFrames({ id }: Record<string, unknown>, answer: Answer): string[] {
  if ("events" in answer) return answer.events.map(([seq, event]) => JSON.stringify({ ...event, metadata: { seq } }));
  if ("result" in answer) return [JSON.stringify({ control: "result", id, ...answer.result })];
  return [JSON.stringify({ control: "error", id, ...answer.refusal })];
}
