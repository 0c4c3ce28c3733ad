/** A real server process on a free port, with the offline model. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
const START_MS = 30_000;
const STOP_MS = 10_000;

export interface Server {
  port: number;
  stop(): Promise<void>;
}

/** Start a server; `settings` are its `AGUI_*` variables. */
export async function startServer(settings: Record<string, string> = {}): Promise<Server> {
  const port = await freePort();
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("AGUI_"));
  const env = {
    ...Object.fromEntries(kept),
    AGUI_HOST: "127.0.0.1",
    AGUI_PORT: String(port),
    PYTHONPATH: join(ROOT, "app"),
    ...settings,
  };
  const child = spawn(python(), ["-m", "agui_container", "serve"], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: string[] = [];
  child.stdout.on("data", (chunk) => log.push(String(chunk)));
  child.stderr.on("data", (chunk) => log.push(String(chunk)));
  if (!(await answers(port, child))) {
    await stop(child);
    throw new Error(`The server did not start: ${log.join("").slice(-2_000)}`);
  }
  return { port, stop: () => stop(child) };
}

export interface RunFacts {
  threadId: string;
  runId: string;
  status: string;
  readers: number;
}

/** The runs that the server knows, as its route tells them. */
export async function runsOf(port: number, threadId: string): Promise<RunFacts[]> {
  const response = await fetch(`http://127.0.0.1:${port}/runs`);
  const { runs } = (await response.json()) as { runs: RunFacts[] };
  return runs.filter((run) => run.threadId === threadId);
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  listener.close();
  await once(listener, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

function python(): string {
  const own = join(ROOT, ".venv", "bin", "python");
  return process.env.PYTHON ?? (existsSync(own) ? own : "python3");
}

async function answers(port: number, child: ChildProcess): Promise<boolean> {
  const deadline = Date.now() + START_MS;
  while (child.exitCode === null && Date.now() < deadline) {
    try {
      if ((await fetch(`http://127.0.0.1:${port}/ping`)).ok) return true;
    } catch {} // not yet
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(timer);
}
