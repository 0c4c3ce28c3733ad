import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@ag-ui/core";
import { continued, unsent } from "../src/state/messages";

function said(id: string, content: string): Message {
  return { id, role: "user", content };
}

function answered(id: string): Message {
  return { id, role: "assistant", content: "Yes." };
}

function ids(messages: readonly Message[]): string[] {
  return messages.map(({ id }) => id);
}

const stored = [said("a", "one"), answered("b"), said("c", "two"), answered("d")];

test("messages that the server does not have continue the stored conversation", () => {
  const rest = unsent([...stored.slice(0, 2), said("e", "three"), said("f", "four")], stored);
  assert.deepEqual(ids(rest), ["e", "f"]);
  assert.deepEqual(ids(continued(stored, rest)), ["a", "b", "c", "d", "e", "f"]);
});

test("an edited message that was refused replaces the stored one and everything after it", () => {
  const rest = unsent([...stored.slice(0, 2), said("c", "2")], stored);
  assert.deepEqual(continued(stored, rest), [...stored.slice(0, 2), said("c", "2")]);
});

test("a message that is stored, or that has an answer, is not unsent", () => {
  assert.deepEqual(unsent(stored.slice(0, 3), stored), []);
  assert.deepEqual(unsent([said("e", "three"), answered("f")], stored), []);
});

test("a stored message of parts is compared by its text", () => {
  const parts: Message = { id: "c", role: "user", content: [{ type: "text", text: "two" }] };
  assert.deepEqual(unsent([answered("b"), parts], stored), []);
});
