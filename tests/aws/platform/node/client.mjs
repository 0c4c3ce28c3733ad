// Invokes a runtime, stops its session and provokes an error; prints what a user of AWS's SDK sees as JSON.
//
// node client.mjs ENDPOINT ARN SESSION INPUT
import {
  BedrockAgentCoreClient,
  InvokeAgentRuntimeCommand,
  StopRuntimeSessionCommand,
} from "@aws-sdk/client-bedrock-agentcore";

const [endpoint, agentRuntimeArn, runtimeSessionId, input] = process.argv.slice(2);
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const client = new BedrockAgentCoreClient({ region: "us-east-1", endpoint, credentials });
const payload = new TextEncoder().encode(input);
const call = { agentRuntimeArn, runtimeSessionId, contentType: "application/json", accept: "text/event-stream" };

const answer = await client.send(new InvokeAgentRuntimeCommand({ ...call, payload }));
const text = await answer.response.transformToString();
const events = text.split("\n").filter((line) => line.startsWith("data:"));
const stopped = await client.send(new StopRuntimeSessionCommand({ agentRuntimeArn, runtimeSessionId }));

const body = JSON.stringify({ code: "RATE_LIMIT_EXCEEDED", count: 3 });
await fetch(`${endpoint}/_platform/next-error`, { method: "POST", body });
const failure = await client.send(new InvokeAgentRuntimeCommand({ ...call, payload })).catch((error) => error);

console.log(
  JSON.stringify({
    types: events.map((line) => JSON.parse(line.slice(5)).type),
    session: answer.runtimeSessionId,
    stopped: stopped.statusCode,
    failure: { name: failure.name, type: failure.$response.headers["x-amzn-errortype"] },
  }),
);
