import assert from "node:assert/strict";
import { test } from "node:test";
import type { ThreadFacts } from "../src/connection/api";
import { branchAt, branchId, conversations, isFork, rootOf, versionsOf } from "../src/state/branches";

let now = 0;

function thread(threadId: string, parent?: string, messageId?: string): ThreadFacts {
  now += 1;
  const origin = parent === undefined ? {} : { forkedFrom: { threadId: parent, messageId: messageId ?? "" } };
  return { threadId, status: "user_turn", createdAt: now, changedAt: now, ...origin };
}

const [ONE, TWO, THREE] = ["t~11111111", "t~22222222", "t~33333333"];

test("the id of a branch names its conversation, also that of a branch of a branch", () => {
  const first = branchId("t", "0a1b2c3d-4e5f");
  assert.equal(first, "t~0a1b2c3d");
  assert.equal(rootOf(branchId(first, "99999999-")), "t");
  assert.equal(rootOf("any~id"), "any~id");
});

test("a list has one conversation for a thread with its branches, and a fork is one of its own", () => {
  const list = [thread(ONE, "t", "m1"), thread("f", "t", "a1"), thread("t"), thread("u")];
  assert.deepEqual(
    conversations(list).map((branches) => branches.map(({ threadId }) => threadId)),
    [[ONE, "t"], ["f"], ["u"]],
  );
  assert.deepEqual(list.map(isFork), [false, true, false, false]);
});

test("a message without branches has no versions", () => {
  assert.equal(versionsOf([thread("t"), thread(ONE, "t", "m2")], "t", "m1"), undefined);
});

test("each thread shows its own version of a message", () => {
  const list = [thread("t"), thread(ONE, "t", "m1"), thread(TWO, ONE, "m1")].reverse();
  const threadIds = ["t", ONE, TWO];
  for (const [at, id] of threadIds.entries()) assert.deepEqual(versionsOf(list, id, "m1"), { threadIds, at });
});

test("a branch at a later message shows the version of the branch that it continues", () => {
  const list = [thread("t"), thread(ONE, "t", "m1"), thread(TWO, ONE, "m2"), thread(THREE, "t", "m9")];
  assert.deepEqual(versionsOf(list, TWO, "m1"), { threadIds: ["t", ONE], at: 1 });
  assert.deepEqual(versionsOf(list, TWO, "m2"), { threadIds: [ONE, TWO], at: 1 });
  assert.deepEqual(versionsOf(list, THREE, "m1"), { threadIds: ["t", ONE], at: 0 });
});

test("a branch has the notices before its message, and none of the version before", () => {
  const messages = [
    { id: "u1", role: "user" as const, content: "pay" },
    { id: "a1", role: "assistant" as const, content: "Paid." },
    { id: "u2", role: "user" as const, content: "again" },
    { id: "a2", role: "assistant" as const, content: "Paid again." },
  ];
  const notices = [null, "u1", "u2", "a2"].map((afterMessageId, at) => ({ id: `n${at}`, afterMessageId, text: "" }));
  const branch = branchAt({ messages, notices }, { id: "u2", role: "user", content: "once more" });
  assert.deepEqual(
    branch.notices?.map(({ id }) => id),
    ["n0", "n1"],
  );
  assert.deepEqual(
    branch.messages?.map(({ content }) => content),
    ["pay", "Paid.", "once more"],
  );
});
