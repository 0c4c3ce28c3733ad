import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { firstValueFrom } from "rxjs";
import { RunRefusedError } from "../src/index.js";
import { AGENTS, close, eventsOf, inputOf } from "./agents.js";
import { withRelay } from "./fixtures.js";
import { type Server, startServer } from "./server.js";

async function refused(promise: Promise<unknown>): Promise<RunRefusedError> {
  const error = await promise.then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RunRefusedError, String(error));
  return error;
}

for (const errorStatus of ["http", "stream"]) {
  describe(`a refusal with AGUI_ERROR_STATUS=${errorStatus}`, () => {
    let server: Server;

    before(async () => {
      server = await startServer({ AGUI_ERROR_STATUS: errorStatus, AGUI_MAX_BODY_BYTES: "10000" });
    });
    after(() => server.stop());

    for (const [transport, makeAgent] of Object.entries(AGENTS)) {
      describe(`over ${transport}`, () => {
        it("has the server's code, its sentence and the id of the request", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const error = await refused(eventsOf(agent, inputOf("hello", { runId: "" })));
            assert.equal(error.code, "VALIDATION_ERROR");
            assert.match(error.message, /^runId: /);
            assert.equal(error.retryable, false);
            assert.ok(error.requestId);
            close(agent);
          }));

        it("of a busy thread can be tried again later, and does not change the open run", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const input = inputOf("wait 1");
            const first = eventsOf(agent, input);
            await firstValueFrom(agent.run(input)); // it has started
            const error = await refused(eventsOf(agent, inputOf("hello", { threadId: input.threadId })));
            assert.equal(error.code, "THREAD_BUSY");
            assert.equal(error.retryable, true);
            assert.deepEqual((await first).at(-1)?.outcome, { type: "success" });
            close(agent);
          }));

        it("of an input that is too large is final, also where the socket is closed for it", () =>
          withRelay(server.port, async (relay) => {
            for (const size of [11_000, 100_000]) {
              const agent = makeAgent(relay);
              const error = await refused(eventsOf(agent, inputOf("x".repeat(size))));
              assert.equal(error.code, "PAYLOAD_TOO_LARGE");
              close(agent);
            }
          }));

        it("of a command has the server's code", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const error = await refused(agent.command({ type: "threads.get", threadId: "nowhere" }));
            assert.equal(error.code, "THREAD_NOT_FOUND");
            close(agent);
          }));

        it("is what runAgent() rejects with", (t) =>
          withRelay(server.port, async (relay) => {
            t.mock.method(console, "error", () => {}); // where the official client writes it, too
            const agent = makeAgent(relay);
            agent.addMessage({ id: "m", role: "user", content: "x".repeat(11_000) });
            assert.equal((await refused(agent.runAgent())).code, "PAYLOAD_TOO_LARGE");
            close(agent);
          }));
      });
    }
  });
}
