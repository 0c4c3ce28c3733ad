/**
 * The page's end of an MCP App: JSON-RPC over messages with the frame of one app.
 *
 * Rules: an app is code of others. It gets the input and the result of its tool, and nothing else of the page. What it
 * asks of its MCP server goes to our server, which decides about it. A message or a link needs the user's consent.
 */

import { fieldsOf } from "../state/custom";

type Fields = Record<string, unknown>;

/** Version of MCP Apps that the page speaks. */
const PROTOCOL_VERSION = "2026-01-26";
/** Requests of one app that may wait. They are sent one by one, because a browser has six connections to a server. */
const MOST_WAITING = 32;

/** Codes of JSON-RPC. */
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/** The call that an app belongs to. */
export interface AppCall {
  toolInput: Fields;
  result: Fields;
}

/** What the page does for an app. */
export interface AppHost {
  /** Send a message to the frame. */
  send(message: object): void;
  /** Pass a request on to the app's MCP server, and return the result. */
  forward(method: string, params: Fields): Promise<unknown>;
  /** Send a text as a message of the user, if the user agrees. Resolves to true if it was sent. */
  say(text: string): Promise<boolean>;
  /** Open an address in another tab, if the user agrees. Resolves to true if it was opened. */
  openLink(address: string): Promise<boolean>;
  resize(height: number): void;
}

export class AppSession {
  private isReady = false;
  private mayNotAsk = false;
  private waiting = 0;
  private forwarded: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly host: AppHost,
    private call: AppCall,
    private context: Fields,
  ) {}

  /** Take a message of the frame. Anything that is no request or notification is ignored. */
  async receive(message: unknown): Promise<void> {
    const { jsonrpc, id, method, params } = fieldsOf(message);
    if (jsonrpc !== "2.0" || typeof method !== "string") return;
    if (id === undefined) return this.notice(method, fieldsOf(params));
    try {
      this.host.send({ jsonrpc, id, result: await this.answer(method, fieldsOf(params)) });
    } catch (error) {
      const code = error instanceof UnknownMethod ? METHOD_NOT_FOUND : INTERNAL_ERROR;
      this.host.send({ jsonrpc, id, error: { code, message: error instanceof Error ? error.message : String(error) } });
    }
  }

  /** Show another call in the app. */
  show(call: AppCall): void {
    this.call = call;
    if (this.isReady) this.sendCall();
  }

  /** Tell the app what has changed around it. */
  change(context: Fields): void {
    this.context = { ...this.context, ...context };
    if (this.isReady) this.notify("ui/notifications/host-context-changed", context);
  }

  private notice(method: string, { height }: Fields): void {
    if (method === "ui/notifications/size-changed" && typeof height === "number") this.host.resize(height);
    if (method !== "ui/notifications/initialized" || this.isReady) return;
    this.isReady = true;
    this.sendCall();
  }

  private async answer(method: string, params: Fields): Promise<unknown> {
    switch (method) {
      case "ui/initialize":
        return {
          protocolVersion: PROTOCOL_VERSION,
          hostInfo: { name: "agui-container", version: "1" },
          hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, message: { text: {} } },
          hostContext: this.context,
        };
      case "ping":
        return {};
      case "tools/call":
        return this.forward(method, { name: params.name, arguments: params.arguments ?? {} });
      case "resources/read":
        return this.forward(method, { uri: params.uri });
      case "ui/message": {
        const text = textOf(params.content);
        return { isError: text === "" || !(await this.consent(() => this.host.say(text))) };
      }
      case "ui/open-link": {
        const { url } = params;
        return { isError: !isWebAddress(url) || !(await this.consent(() => this.host.openLink(url))) };
      }
      case "ui/request-display-mode":
        return { mode: "inline" };
      default:
        throw new UnknownMethod(`This page does not know ${method}.`);
    }
  }

  /** Ask the user, unless the app asks already, or the user has refused what it asked before. */
  private async consent(ask: () => Promise<boolean>): Promise<boolean> {
    if (this.mayNotAsk) return false;
    this.mayNotAsk = true;
    const isAllowed = await ask();
    this.mayNotAsk = !isAllowed;
    return isAllowed;
  }

  private async forward(method: string, params: Fields): Promise<unknown> {
    if (this.waiting >= MOST_WAITING) throw new Error("Too many requests wait for an answer.");
    this.waiting += 1;
    const answer = this.forwarded.then(() => this.host.forward(method, params));
    this.forwarded = answer.catch(() => undefined);
    return answer.finally(() => {
      this.waiting -= 1;
    });
  }

  private sendCall(): void {
    this.notify("ui/notifications/tool-input", { arguments: this.call.toolInput });
    this.notify("ui/notifications/tool-result", this.call.result);
  }

  private notify(method: string, params: Fields): void {
    this.host.send({ jsonrpc: "2.0", method, params });
  }
}

class UnknownMethod extends Error {}

/** The text of content blocks. */
function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? content.map(fieldsOf) : [];
  const texts = blocks.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : ""));
  return texts.filter(Boolean).join("\n").trim();
}

function isWebAddress(address: unknown): address is string {
  return typeof address === "string" && URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
}
