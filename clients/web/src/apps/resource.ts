/**
 * The page of an MCP App: its HTML from the MCP server, and the address of the frame that may show it.
 *
 * Rule: a page is HTML of one type, and its frame may reach no domain that the page does not name.
 */

import type { Interrupt, ResumeEntry, RunAgentInput } from "@ag-ui/core";
import { chat } from "../chat";
import { endpoint, newId } from "../config";
import { runAside } from "../connection/api";
import { choices } from "../server";
import { fieldsOf } from "../state/custom";

type Fields = Record<string, unknown>;

const MEDIA_TYPE = "text/html;profile=mcp-app";

/** Where an app comes from, as the server has named it. */
export interface AppSource {
  serverId?: unknown;
  serverHash?: unknown;
  resourceUri: string;
}

export interface AppPage {
  html: string;
  /** The address of the frame, which names the domains that the page needs. */
  frame: string;
  hasBorder: boolean;
}

/** Ask the user what the server wants to know before it answers. */
export type Ask = (interrupts: readonly Interrupt[]) => Promise<ResumeEntry[]>;

/** Send a request to the MCP server of an app, and return its result. Rejects with what the server has against it. */
export async function forward(source: AppSource, method: string, params: Fields, ask: Ask): Promise<unknown> {
  const { serverId, serverHash } = source;
  let resume: ResumeEntry[] | undefined;
  while (true) {
    const input = {
      threadId: chat.value.threadId,
      runId: newId(),
      protocolVersion: "1.0",
      messages: [],
      state: null,
      tools: [],
      context: [],
      forwardedProps: { ...choices(), __proxiedMCPRequest: { serverHash, serverId, method, params } },
      ...(resume === undefined ? {} : { resume }),
    } as RunAgentInput;
    const { outcome, result } = await runAside(input);
    if (outcome?.type === "interrupt") {
      resume = await ask(outcome.interrupts);
      continue;
    }
    const { error } = fieldsOf(result);
    if (typeof error === "string") throw new Error(error);
    return result;
  }
}

/** Read the page of an app. */
export async function readPage(source: AppSource, ask: Ask): Promise<AppPage> {
  const { contents } = fieldsOf(await forward(source, "resources/read", { uri: source.resourceUri }, ask));
  const resource = fieldsOf(Array.isArray(contents) ? contents[0] : undefined);
  if (resource.mimeType !== MEDIA_TYPE) throw new Error(`The resource is not of the type ${MEDIA_TYPE}.`);
  const { csp, prefersBorder } = fieldsOf(fieldsOf(resource._meta).ui);
  const { connectDomains, resourceDomains } = fieldsOf(csp);
  const query = new URLSearchParams([...named("connect", connectDomains), ...named("resource", resourceDomains)]);
  return {
    html: typeof resource.text === "string" ? resource.text : decoded(String(resource.blob ?? "")),
    frame: endpoint(`console/app-frame.html?${query}`),
    hasBorder: prefersBorder !== false,
  };
}

function named(kind: string, domains: unknown): [string, string][] {
  return Array.isArray(domains) ? domains.map((domain) => [kind, String(domain)]) : [];
}

function decoded(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}
