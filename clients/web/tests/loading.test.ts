import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { location, server, storedThread, until } from "./page";

const { askAgain, chat, isLoaded, send } = await import("../src/chat");
const { session } = await import("../src/config");
const { queueOf } = await import("../src/message-queue");
const { fork, loadEarlier, newThread, openThread, refreshThread } = await import("../src/thread");
const { threadInAddress, threads } = await import("../src/threads");

const BEFORE = [
  { id: "u1", role: "user", content: "before" },
  { id: "a1", role: "assistant", content: "hello" },
];
const LATER = [...BEFORE, { id: "u2", role: "user", content: "in another tab" }];

beforeEach(() => {
  newThread();
  server.reset();
  server.threads.set("t", storedThread("t", { messages: BEFORE }));
});

const texts = () => chat.value.messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));
const isSent = ({ unsent, run }: typeof chat.value) => Object.keys(unsent).length === 0 && run.status === "finished";

test("a message that is sent before its thread is shown is sent when the thread is shown", async () => {
  const show = server.hold("threads.get");
  const opened = openThread("t");
  await send("early");
  assert.deepEqual([isLoaded.value, server.inputs], [false, []]);
  show();
  await opened;
  await until(chat, isSent);
  assert.deepEqual(texts(), ["before", "early"]);
  assert.deepEqual(
    server.inputs.map(({ threadId, messages }) => [threadId, messages.map(({ content }) => content)]),
    [["t", ["early"]]],
  );
  assert.deepEqual(queueOf("t"), []);
});

test("the question of a run that was asked for before its thread was shown waits for an answer", async () => {
  const interrupts = [{ id: "i", reason: "order", message: "Where to?" }];
  server.ending = () => ({ type: "RUN_FINISHED", outcome: { type: "interrupt", interrupts } });
  const show = server.hold("threads.get");
  const opened = openThread("t");
  await send("ask");
  show();
  await opened;
  await until(chat, ({ run }) => run.status === "interrupted");
  assert.deepEqual(chat.value.interrupts, interrupts);
});

test("messages that are sent before their thread is shown are sent in their order, one run for each", async () => {
  const show = server.hold("threads.get");
  const opened = openThread("t");
  await send("one");
  await send("two");
  show();
  await opened;
  await until(chat, (state) => isSent(state) && texts().length === 3);
  assert.deepEqual(texts(), ["before", "one", "two"]);
  assert.equal(server.inputs.length, 2);
});

test("a message that is sent before its thread is shown waits for the run that is open there", async () => {
  server.threads.set("t", storedThread("t", { messages: BEFORE, activeRunId: "r" }));
  const show = server.hold("threads.get");
  const end = server.hold("attach");
  const opened = openThread("t");
  await send("early");
  show();
  await until(chat, ({ run }) => run.id === "r");
  assert.deepEqual(server.inputs, []);
  end();
  await opened;
  await until(chat, (state) => state.run.id !== "r" && isSent(state));
  assert.deepEqual(texts(), ["before", "early"]);
});

test("a message for a thread that has no run yet begins that thread", async () => {
  const show = server.hold("threads.get");
  const opened = openThread("new");
  await send("early");
  show();
  await opened;
  await until(chat, isSent);
  assert.deepEqual([chat.value.threadId, texts()], ["new", ["early"]]);
});

test("a message waits while its thread cannot be loaded, and is sent when it is loaded", async () => {
  server.failing.add("threads.get");
  await openThread("t");
  await send("early");
  assert.deepEqual([isLoaded.value, server.inputs, queueOf("t").length], [false, [], 1]);
  server.failing.clear();
  await openThread("t");
  await until(chat, isSent);
  assert.deepEqual(texts(), ["before", "early"]);
});

test("a message waits with its thread while another one is opened, and is sent when its own is shown", async () => {
  server.threads.set("other", storedThread("other"));
  const show = server.hold("threads.get");
  const left = openThread("t");
  await send("early");
  const opened = openThread("other");
  show();
  await Promise.all([left, opened]);
  assert.deepEqual([chat.value.threadId, server.inputs], ["other", []]);
  await openThread("t");
  await until(chat, isSent);
  assert.deepEqual([chat.value.threadId, texts()], ["t", ["before", "early"]]);
});

test("a run that begins while its thread is loaded again is shown", async () => {
  await openThread("t");
  server.threads.set("t", storedThread("t", { messages: LATER }));
  const show = server.hold("threads.get");
  const refreshed = refreshThread();
  await send("mine");
  show();
  await refreshed;
  assert.deepEqual(texts(), ["before", "mine"]);
  await refreshThread();
  await until(chat, () => texts().includes("in another tab"));
});

test("a thread that is loaded while its branch is made is not shown", async () => {
  await openThread("t");
  server.threads.set("t", storedThread("t", { messages: LATER }));
  const show = server.hold("threads.get");
  const refreshed = refreshThread();
  const branch = server.hold("threads.fork");
  const asked = askAgain("a1");
  show();
  await refreshed;
  branch();
  await asked;
  assert.deepEqual(texts(), ["before"]);
});

test("a fork does not leave the thread that was opened meanwhile", async () => {
  await openThread("t");
  const let_go = server.hold("threads.fork");
  const forked = fork("a1");
  newThread();
  const { threadId } = chat.value;
  let_go();
  await forked;
  assert.equal(chat.value.threadId, threadId);
});

test("earlier messages that could not be loaded can be asked for again", async () => {
  server.threads.set("t", storedThread("t", { messages: BEFORE, before: "u1" }));
  await openThread("t");
  server.failing.add("threads.get");
  await assert.rejects(loadEarlier(), /cannot be reached/);
  server.failing.clear();
  const earlier = { id: "u0", role: "user", content: "long ago" };
  server.threads.set("t", storedThread("t", { messages: [earlier] }));
  await loadEarlier();
  assert.deepEqual([texts(), chat.value.earlier], [["long ago", "before"], undefined]);
});

test("a list that cannot be asked for says so until it can, and so does a search", async () => {
  server.failing.add("threads.list");
  await threads.refresh();
  assert.deepEqual([threads.isReachable.value, threads.refusal.value], [false, "The server cannot be reached."]);
  await threads.search("hello");
  assert.deepEqual([threads.isSearching.value, threads.found.value], [false, []]);
  assert.equal(threads.problem.value, "The search has failed. The server cannot be reached.");
  server.failing.clear();
  await threads.refresh();
  assert.deepEqual([threads.isReachable.value, threads.refusal.value], [true, ""]);
});

test("an address names a thread unless it cannot be read", () => {
  location.hash = "#/a%20b";
  assert.equal(threadInAddress(), "a b");
  for (const hash of ["", "#top", "#/%E0%A4%A"]) {
    location.hash = hash;
    assert.equal(threadInAddress(), null);
  }
});

test("a stored session id that AgentCore would refuse is replaced", () => {
  assert.ok(session.length >= 33);
  assert.equal(localStorage.getItem("agui.session"), session);
});

test("an idle page notices within 5 seconds that its server hangs, and then that it answers again", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  threads.watch();
  const answers = server.hold("ping");
  mock.timers.tick(2_000); // a timer that begins during a tick counts from its end
  mock.timers.tick(3_000);
  await until(threads.isReachable, (isReachable) => !isReachable);
  answers();
  await until(threads.isReachable, (isReachable) => isReachable);
  mock.timers.reset();
});
