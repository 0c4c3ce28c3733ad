/** Passes a request on to the agent server with the token of the user, and its events back while they come. */

import { cookies } from "next/headers";

const AGENT_URL = process.env.AGENT_URL ?? "http://localhost:8080/invocations";

export async function POST(request: Request) {
  const token = (await cookies()).get("token")?.value;
  const answer = await fetch(AGENT_URL, {
    method: "POST",
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    body: await request.text(),
    signal: request.signal, // the page may leave before the answer begins
  });
  // no-transform keeps Next.js from compressing the stream, which would hold events back
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform" };
  return new Response(answer.body, { status: answer.status, headers });
}
