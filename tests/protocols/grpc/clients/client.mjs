// A client of @grpc/grpc-js. `node client.mjs PORT SCENARIO` plays a scenario and prints what it saw as one line of JSON.

import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [port, scenario] = process.argv.slice(2);
const folder = fileURLToPath(new URL("../../../../proto", import.meta.url));
const options = { keepCase: true, oneofs: true, longs: Number, includeDirs: [folder] };
const protos = grpc.loadPackageDefinition(loadSync(["roz/v1/agent.proto", "kontekst/kontekst.proto"], options));
const address = `127.0.0.1:${port}`;

function dial(Service, channelOptions = {}) {
  return new Service(address, grpc.credentials.createInsecure(), channelOptions);
}

/** One bidirectional call. `next` waits for a message of a kind; `rest` gives all kinds that follow, and the status. */
class Talk {
  constructor(call, oneof) {
    this.call = call;
    this.oneof = oneof;
    this.seen = [];
    this.waiting = null;
    this.status = null;
    call.on("data", (message) => this.#arrived(message));
    call.on("error", () => {});
    call.on("status", (status) => {
      this.status = { code: status.code, details: status.details, agui: status.metadata.get("agui-code")[0] ?? null };
      this.#wake();
    });
  }

  #arrived(message) {
    this.seen.push(message);
    this.#wake();
  }

  #wake() {
    this.waiting?.();
    this.waiting = null;
  }

  async until(kind, from = 0) {
    for (let at = from; ; at++) {
      while (at >= this.seen.length) {
        if (this.status) throw new Error(`ended without ${kind}: ${JSON.stringify(this.status)}`);
        await new Promise((resolve) => (this.waiting = resolve));
      }
      if (this.seen[at][this.oneof] === kind) return this.seen[at][kind];
    }
  }

  async end() {
    while (!this.status) await new Promise((resolve) => (this.waiting = resolve));
    return this.status;
  }

  /** The kinds that have come; of equal kinds that follow one another one is shown. */
  get kinds() {
    return this.seen.map((it) => it[this.oneof]).filter((kind, at, all) => kind !== all[at - 1]);
  }
}

const run = (metadata, deadline) =>
  new Talk(dial(protos.kontekst.AgentService).Run(metadata ?? new grpc.Metadata(), deadline ?? {}), "event");
const session = (channelOptions) =>
  new Talk(dial(protos.roz.v1.AgentService, channelOptions).StreamSession(new grpc.Metadata()), "response");
const texts = (talk, kind, field) => talk.seen.filter((it) => it[kind]).map((it) => it[kind][field]).join("");

const scenarios = {
  /** The diagram of roz: a tool of the client, its result, and the end of the turn. */
  async roz() {
    const talk = session();
    const tool = { name: "move", description: "Move.", parameters_schema: { fields: {} }, timeout_ms: 5000 };
    talk.call.write({ start: { tools: [tool] } });
    const started = await talk.until("session_started");
    talk.call.write({ user_message: { message_id: "m1", content: 'call move {"x": 3}' } });
    const request = await talk.until("tool_request");
    talk.call.write({ tool_result: { tool_call_id: request.tool_call_id, success: true, result: "moved to 3" } });
    const complete = await talk.until("turn_complete");
    talk.call.end();
    const status = await talk.end();
    return {
      model: started.model,
      tool: request.tool_name,
      text: texts(talk, "text_delta", "content"),
      events: talk.seen.filter((it) => it.session_event?.text_delta).length > 0,
      turn: [complete.message_id, complete.stop_reason],
      status: status.code,
    };
  },

  /** A run of kontekst whose call is approved. */
  async kontekst() {
    const talk = run();
    talk.call.write({ start: { prompt: "calculate 6*7" } });
    const { calls } = await talk.until("tools_proposed");
    talk.call.write({ approve_tool: { call_id: calls[0].call_id } });
    const status = await talk.end();
    return { kinds: talk.kinds, name: calls[0].name, text: texts(talk, "token", "text"), status: status.code };
  },

  /** A status, a cancelled call, a deadline, and an error with its trailers, on one connection each. */
  async calls() {
    const daemon = dial(protos.kontekst.DaemonService);
    const found = await new Promise((resolve, reject) =>
      daemon.GetStatus({}, (error, answer) => (error ? reject(error) : resolve(answer))),
    );
    const cancelled = run();
    cancelled.call.write({ start: { prompt: "wait 30" } });
    await cancelled.until("token");
    cancelled.call.cancel();
    const late = run(undefined, { deadline: Date.now() + 1000 });
    late.call.write({ start: { prompt: "wait 30" } });
    const wrong = run();
    wrong.call.write({ cancel: {} });
    const ends = [await cancelled.end(), await late.end(), await wrong.end()];
    return { bind: found.bind, codes: ends.map((it) => it.code), agui: ends[2].agui, details: ends[2].details };
  },

  /** A long answer to a client that reads slowly, on a connection with keepalive pings and compressed requests. */
  async slow() {
    const gzip = { "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip };
    const talk = session({ ...gzip, "grpc.keepalive_time_ms": 1000, "grpc.keepalive_permit_without_calls": 1 });
    talk.call.write({ start: {} });
    talk.call.write({ user_message: { content: `stream 20000${" ".repeat(5000)}` } });
    await talk.until("text_delta");
    talk.call.pause();
    await new Promise((resolve) => setTimeout(resolve, 2500));
    talk.call.resume();
    await talk.until("turn_complete");
    talk.call.end();
    return { length: texts(talk, "text_delta", "content").length, status: (await talk.end()).code };
  },
};

console.log(JSON.stringify(await scenarios[scenario]()));
process.exit(0);
