import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { server, storedThread, until } from "./page";

const { answer, askAgain, chat, failureOf, problem, retry, send, stop } = await import("../src/chat");
const { queueOf } = await import("../src/message-queue");
const { newThread, openThread } = await import("../src/thread");

const BEFORE = [
  { id: "u1", role: "user", content: "before" },
  { id: "a1", role: "assistant", content: "hello" },
];

beforeEach(() => {
  newThread();
  server.reset();
});

const texts = () => chat.value.messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));
const sentTexts = () => server.inputs.map(({ messages }) => messages.map(({ content }) => content));

test("a run sends only what the server does not have", async () => {
  server.threads.set("t", storedThread("t", { messages: BEFORE }));
  await openThread("t");
  await send("one");
  await send("two");
  assert.deepEqual(sentTexts(), [["one"], ["two"]]);
});

test("a run that is stopped before the server has admitted it is shown as stopped, and cancelled there", async () => {
  const admit = server.hold("run");
  void send("hello");
  await until(server.arrivals, (count) => count === 1);
  stop();
  await until(chat, ({ run }) => run.status === "cancelled");
  assert.equal(chat.value.run.isByUser, true);
  admit();
  await until(server.cancelled, (runIds) => runIds.length === 1);
  assert.deepEqual(server.cancelled.value, [server.inputs[0]!.runId]);
  assert.equal(chat.value.run.status, "cancelled");
  await send("and now?");
  assert.equal(chat.value.run.status, "finished");
});

test("a run that is stopped at once is not sent", async () => {
  const sent = send("hello");
  stop();
  await sent;
  assert.deepEqual([chat.value.run.status, server.inputs], ["cancelled", []]);
});

test("messages wait for the end of a run, and after a stop for the user", async () => {
  const end = server.hold("run");
  const first = send("one");
  await until(server.arrivals, (count) => count === 1);
  await send("two");
  assert.deepEqual(texts(), ["one"]);
  end();
  await first;
  await until(chat, ({ messages, unsent }) => messages.length === 2 && Object.keys(unsent).length === 0);
  const endLast = server.hold("run");
  void send("three");
  await until(server.arrivals, (count) => count === 3);
  await send("four");
  stop();
  await until(chat, ({ run }) => run.status === "cancelled");
  assert.deepEqual([texts(), queueOf(chat.value.threadId)], [["one", "two", "three"], [{ content: "four" }]]);
  endLast();
});

test("the answers to questions are sent again after a refusal that passes", async () => {
  const interrupts = [{ id: "i", reason: "order", message: "Where to?" }];
  server.ending = () => ({ type: "RUN_FINISHED", outcome: { type: "interrupt", interrupts } });
  await send("ask");
  server.refusal = { code: "RATE_LIMIT_EXCEEDED", message: "Too many runs.", metadata: { retryable: true } };
  const payload = { city: "Lisbon" };
  await answer(chat.value.interrupts[0]!, { status: "resolved", payload });
  assert.deepEqual(chat.value.run.failure?.message, "Too many runs.");
  server.refusal = undefined;
  server.ending = () => ({ type: "RUN_FINISHED" });
  await retry();
  assert.equal(chat.value.run.status, "finished");
  assert.deepEqual(server.inputs.at(-1)!.resume, [{ interruptId: "i", status: "resolved", payload }]);
});

test("a message that was refused for good stays, and is not sent again", async () => {
  server.refusal = { code: "PAYLOAD_TOO_LARGE", message: "Too large." };
  await send("x");
  assert.deepEqual(Object.values(chat.value.unsent), ["Too large."]);
  server.refusal = undefined;
  await send("y");
  assert.deepEqual([texts(), sentTexts().at(-1)], [["x", "y"], ["y"]]);
});

test("a branch that cannot be made loses nothing", async () => {
  server.threads.set("t", storedThread("t", { messages: BEFORE }));
  await openThread("t");
  const before = chat.value;
  server.failing.add("threads.fork");
  await askAgain("a1");
  assert.equal(chat.value, before);
  assert.equal(problem.value?.message, "The server cannot be reached.");
});

test("a stop that no server answers says that the run may still be open", () => {
  const error = Object.assign(new Error("no answer"), { name: "CancelTimeoutError" });
  assert.match(failureOf(error).message, /may still be open/);
});
