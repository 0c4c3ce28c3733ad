// Lets the official AG-UI client judge event streams and a live server, on behalf of pytest.
//
// One JSON object per line. In: {id, op, ...}; out: {id, answer} or {id, fault}. Requests are handled one after another,
// so what the client prints meanwhile belongs to the request at hand. Nothing here decides what is right: it reports what
// the client's own exports accept, reject, rewrite and warn about.

import { createInterface } from "node:readline";

import {
  AbstractAgent,
  CompatibilityBoundary,
  HttpAgent,
  buildResumeArray,
  enforceEvents,
  transformChunks,
  verifyEvents,
} from "@ag-ui/client";
import { HttpAgent as OlderAgent } from "older-client";
import { Subject, from } from "rxjs";

// --- what the client prints is a finding; stdout belongs to the answers ---

let printed = [];
for (const level of ["log", "info", "debug", "warn", "error"]) {
  console[level] = (...parts) => printed.push(`${level}: ${parts.map(text).join(" ")}`);
}
process.on("unhandledRejection", (error) => printed.push(`unhandled: ${text(error)}`));

function text(part) {
  if (part instanceof Error) return `${part.name}: ${part.message}`;
  return typeof part === "string" ? part : JSON.stringify(part);
}

// --- streams: the client's stages, one event at a time ---

const NO_INPUT = { threadId: "t", runId: "r", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };

/** How many events pass before the first rejection, and what comes out of the stages. */
function verify(events, { chunks = false, enforce = false, outputs = false }) {
  const source = new Subject();
  let stream = source;
  if (enforce) stream = enforceEvents(false)(new CompatibilityBoundary().run(NO_INPUT, { run: () => source }));
  if (chunks) stream = transformChunks(false)(stream);
  const verdict = { accepted: 0, error: null, ...(outputs && { events: [] }) };
  verifyEvents(false)(stream).subscribe({
    next: (event) => verdict.events?.push(event),
    error: (error) => (verdict.error = text(error)),
  });
  for (const event of events) {
    source.next(event);
    if (verdict.error !== null) break;
    verdict.accepted += 1;
  }
  source.complete();
  return verdict;
}

// --- agents: the whole client, over HTTP or over events that came another way ---

/** The whole client with given events in place of a transport. */
class ReplayAgent extends AbstractAgent {
  constructor({ events, ...config }) {
    super(config);
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

/** An HttpAgent that keeps what came over the wire. An older one is from before AG-UI 1.0. */
function httpAgent({ url, headers, older = false, ...config }, wire) {
  return new (older ? OlderAgent : HttpAgent)({
    ...config,
    url,
    headers,
    fetch: async (address, init) => {
      const response = await fetch(address, init);
      wire.status = response.status;
      wire.headers = Object.fromEntries(response.headers);
      const decoder = new TextDecoder();
      const keep = new TransformStream({
        transform(piece, controller) {
          wire.text += decoder.decode(piece, { stream: true });
          controller.enqueue(piece);
        },
      });
      return new Response(response.body.pipeThrough(keep), { status: response.status, headers: response.headers });
    },
  });
}

/**
 * Runs one agent through several turns. Besides the parameters of runAgent, a turn may `add` messages, `answer` every
 * call that the turn before left pending, `decide` on the interrupts that are open, by position (the client's own
 * `buildResumeArray` makes the answers of it; `partly` leaves that out, and with it the client's first check), pretend
 * that so many `seconds` have passed, abort after so many events, and post a body to the server meanwhile.
 */
async function run({ turns, events, ...config }) {
  const wire = {};
  const agent = events ? new ReplayAgent({ ...config, events }) : httpAgent(config, wire);
  const reports = [];
  for (const turn of turns) reports.push(await runTurn(agent, config.url, turn, wire, reports.at(-1)));
  return { turns: reports, messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts };
}

async function runTurn(agent, url, turn, wire, before) {
  const { add = [], answer, decide, partly = false, seconds = 0, abortAfter, meanwhile, ...parameters } = turn;
  printed = [];
  Object.assign(wire, { status: null, headers: {}, text: "" });
  const report = { events: [], error: null, failed: null, meanwhile: null, pending: [], interrupts: [] };
  let sent = null;
  const subscriber = {
    onEvent: ({ event }) => {
      report.events.push(event);
      if (report.events.length === abortAfter) agent.abortRun();
      if (report.events.length === meanwhile?.after) sent = post(url, meanwhile.body);
    },
    onRunFinishedEvent: ({ pendingToolCallIds }) => void (report.pending = pendingToolCallIds ?? unanswered(agent)),
    onRunFailed: ({ error }) => void (report.failed = text(error)),
  };
  try {
    agent.addMessages([...add, ...answers(answer, before)]);
    if (decide) parameters.resume = decided(agent.pendingInterrupts, decide, partly);
    await later(seconds, () => agent.runAgent(parameters, subscriber));
  } catch (error) {
    report.error = text(error);
  }
  report.interrupts = agent.pendingInterrupts;
  report.meanwhile = await sent;
  await new Promise(setImmediate); // what was rejected without a handler has been printed by now
  return { ...report, printed, wire: { ...wire } };
}

/** The calls of the last message, which have no results: what a client from before AG-UI 1.0 knows of open calls. */
function unanswered({ messages }) {
  return (messages.at(-1)?.toolCalls ?? []).map(({ id }) => id);
}

function answers(content, before) {
  if (content === undefined) return [];
  return before.pending.map((id) => ({ id: `answer to ${id}`, role: "tool", toolCallId: id, content }));
}

/** The answers to the open interrupts, in their order. */
function decided(interrupts, decisions, partly) {
  const given = interrupts.slice(0, decisions.length).map(({ id }, at) => [id, decisions[at]]);
  if (!partly) return buildResumeArray(interrupts, Object.fromEntries(given));
  return given.map(([interruptId, decision]) => ({ interruptId, ...decision }));
}

/** Does something at another time of the clock. */
async function later(seconds, task) {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...parts) {
      super(...(parts.length ? parts : [RealDate.now() + 1000 * seconds]));
    }
  };
  try {
    return await task();
  } finally {
    globalThis.Date = RealDate;
  }
}

async function post(url, body) {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

// --- the conversation with pytest ---

const OPS = {
  verify: ({ events, ...options }) => {
    const verdict = verify(events, options);
    return { ...verdict, printed };
  },
  verifyMany: ({ walks, ...options }) => walks.map((events) => verify(events, options)),
  run,
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { id, op, ...request } = JSON.parse(line);
  printed = [];
  let reply;
  try {
    reply = { id, answer: await OPS[op](request) };
  } catch (error) {
    reply = { id, fault: error?.stack ?? String(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
