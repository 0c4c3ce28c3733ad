/**
 * `connectAgent()`: show a thread, and follow its open run.
 *
 * Rule: no run is started, and no text is shown twice. The server adds the messages of a run to its thread when the run
 * ends, so the snapshot of a thread with an open run ends where the replay of that run begins.
 */

import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { concatMap, Observable, retry } from "rxjs";
import { Backoff, onAbort } from "./backoff.js";
import { ConnectionDropped, RunRefusedError } from "./errors.js";
import { followRun, type ResumeOptions } from "./run.js";
import type { CommandResult, Transport } from "./transport.js";

/**
 * Show the thread of `input`.
 *
 * A thread with an open run appears as that run, with snapshots of what was before it. Any other thread appears as a
 * run of snapshots with the id in `input`, and with the interrupts that wait for an answer. A thread that has not begun
 * has no events. After a drop and after a refusal that is `retryable` the thread is asked for again, because a run may
 * have started in the meantime.
 */
export function showThread(
  transport: Transport,
  input: RunAgentInput,
  options: ResumeOptions,
  cancel: AbortSignal,
): Observable<BaseEvent> {
  const { threadId, resume: _, ...fields } = input;
  const empty = { ...fields, threadId, messages: [], forwardedProps: {} };
  const backoff = new Backoff(options);
  return findThread(transport, threadId, cancel).pipe(
    concatMap((thread) => {
      const runId = thread.activeRunId;
      if (typeof runId !== "string") {
        return followRun(transport, { threadId, runId: input.runId, input: empty }, options, cancel);
      }
      const run = followRun(transport, { threadId, runId }, options, cancel);
      return run.pipe(concatMap((event) => (event.type === "RUN_STARTED" ? [event, ...snapshots(thread)] : [event])));
    }),
    retry({
      delay: async (error: unknown) => {
        if (!isTemporary(error)) throw error;
        await backoff.pause(error, [cancel]);
      },
    }),
  );
}

function isTemporary(error: unknown): boolean {
  return error instanceof ConnectionDropped || (error instanceof RunRefusedError && error.retryable);
}

function snapshots(thread: CommandResult): BaseEvent[] {
  return [
    { type: "MESSAGES_SNAPSHOT", messages: thread.messages } as unknown as BaseEvent,
    { type: "STATE_SNAPSHOT", snapshot: thread.state ?? {} } as unknown as BaseEvent,
  ];
}

/** The thread, with its messages if a run is open there. No value if it has no run yet or `cancel` is aborted. */
function findThread(transport: Transport, threadId: string, cancel: AbortSignal): Observable<CommandResult> {
  return new Observable((subscriber) => {
    const stopping = new AbortController();
    const removeListener = onAbort(cancel, () => stopping.abort());
    askThread(transport, threadId, stopping.signal).then(
      (thread) => {
        if (thread) subscriber.next(thread);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(error),
    );
    return () => {
      removeListener();
      stopping.abort();
    };
  });
}

async function askThread(
  transport: Transport,
  threadId: string,
  stopping: AbortSignal,
): Promise<CommandResult | undefined> {
  if (stopping.aborted) return undefined;
  const command = { type: "threads.get", threadId };
  try {
    const thread = await transport.command({ ...command, messages: false }, stopping);
    return "activeRunId" in thread ? await transport.command(command, stopping) : thread;
  } catch (error) {
    if (stopping.aborted) return undefined;
    if (error instanceof RunRefusedError && error.code === "THREAD_NOT_FOUND") return undefined;
    throw error;
  }
}
