/** A real server process on a port that it asks the kernel for, with the offline model. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

export const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
const LISTENING = /listening host=127\.0\.0\.1 port=(\d+)/;
const START_MS = 300_000;
const STOP_MS = 100_000;

export interface Server {
  port: number;
  stop(): Promise<void>;
}

/** Start a server; `settings` are its `AGUI_*` variables. */
export async function startServer(settings: Record<string, string> = {}): Promise<Server> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("AGUI_"));
  const env = {
    ...Object.fromEntries(kept),
    AGUI_HOST: "127.0.0.1",
    AGUI_PORT: "0",
    PYTHONPATH: [join(ROOT, "app"), join(ROOT, "clients", "python", "src")].join(delimiter),
    ...settings,
  };
  const child = spawn(python(), ["-m", "agui_container", "serve"], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  const port = await new Promise<number | undefined>((resolve) => {
    const read = (chunk: Buffer) => {
      log += chunk;
      const found = LISTENING.exec(log);
      if (found) resolve(Number(found[1]));
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => resolve(undefined));
    setTimeout(() => resolve(undefined), START_MS).unref();
  });
  if (port === undefined) {
    await stop(child);
    throw new Error(`The server did not start: ${log.slice(-2_000)}`);
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

function python(): string {
  const own = join(ROOT, ".venv", "bin", "python");
  return process.env.PYTHON ?? (existsSync(own) ? own : "python3");
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(timer);
}
