import assert from "node:assert/strict";
import { test } from "node:test";
import { server } from "./page";

const { isKnown, load, remember } = await import("../src/stored-files");

test("a file that a message names is asked for once, and again after a failure", async () => {
  const named = { type: "file", provider: "agui", value: "f1" } as const;
  server.failing.add("files.get");
  await assert.rejects(load(named), /cannot be reached/);
  server.reset();
  server.results["files.get"] = { name: "a.png", mimeType: "image/png", data: "eA==" };
  const file = await load(named);
  assert.equal(file.data, "eA==");
  server.failing.add("files.get");
  assert.equal(await load(named), file);
  remember("f2", file); // this page has uploaded it
  assert.equal(await load({ ...named, value: "f2" }), file);
  assert.deepEqual([isKnown(named), isKnown({ ...named, provider: "openai" })], [true, false]);
});
