import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@ag-ui/core";
import { historyOf, openCalls, refused, unsent } from "../src/state/messages";

function said(id: string): Message {
  return { id, role: "user", content: id };
}

function calling(id: string, ...calls: string[]): Message {
  const toolCalls = calls.map((call) => ({
    id: call,
    type: "function" as const,
    function: { name: "pay", arguments: "" },
  }));
  return { id, role: "assistant", toolCalls };
}

test("only messages are sent that the server does not have and has not refused for good", () => {
  const messages = ["a", "b", "c"].map(said);
  const waiting = { b: "Too large.", c: "" };
  assert.deepEqual(unsent({ messages, unsent: waiting }), [messages[2]]);
  assert.deepEqual(refused(waiting), { b: "Too large." });
});

test("a call without a result is open until the user says something else", () => {
  const answered: Message = { id: "r", role: "tool", toolCallId: "c1", content: "paid" };
  const messages = [said("a"), calling("b", "c1", "c2"), answered];
  assert.deepEqual(
    openCalls(messages).map(({ id }) => id),
    ["c2"],
  );
  assert.deepEqual(openCalls([...messages, said("d")]), []);
});

test("a copy of a request has the history, and ends with the last message of the user if it had none", () => {
  const messages = [said("a"), calling("b", "c1"), said("c"), calling("d", "c2")];
  assert.deepEqual(historyOf([messages[0]!], messages), messages.slice(0, 1));
  assert.deepEqual(historyOf([], messages), messages.slice(0, 3));
  assert.deepEqual(historyOf([said("gone")], messages), [said("gone")]);
});
