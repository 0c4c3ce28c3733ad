/** The run: its status, tokens, and the parts of the context window. */

import type { TokenUsage } from "@ag-ui/core";
import { chat } from "../chat";
import { capabilities, customOf } from "../server";
import { costOf } from "../state/cost";
import type { ContextUse } from "../state/types";
import { useStore } from "../store";
import { count, duration } from "./format";

export function RunPanel() {
  const { run, usage, context, threadId } = useStore(chat);
  const took = run.startedAt !== undefined && run.endedAt !== undefined ? run.endedAt - run.startedAt : undefined;
  return (
    <div class="facts">
      <section>
        <h2>Run</h2>
        <dl>
          <Fact name="Status" value={run.status} />
          {took !== undefined && <Fact name="Time" value={duration(took)} />}
          {run.id !== undefined && <Fact name="Run id" value={run.id} isCode />}
          <Fact name="Thread id" value={threadId} isCode />
        </dl>
      </section>
      <Tokens usage={usage} />
      {context !== undefined && <Context context={context} />}
    </div>
  );
}

export function Fact({ name, value, isCode }: { name: string; value: string; isCode?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{isCode ? <code>{value}</code> : value}</dd>
    </div>
  );
}

function Tokens({ usage }: { usage: readonly TokenUsage[] }) {
  const { prices = {} } = customOf(useStore(capabilities));
  if (usage.length === 0) return null;
  const sum = (name: "inputTokens" | "outputTokens" | "reasoningTokens" | "cachedInputTokens") =>
    usage.reduce((total, entry) => total + (entry[name] ?? 0), 0);
  const cached = sum("cachedInputTokens");
  const reasoning = sum("reasoningTokens");
  return (
    <section>
      <h2>Tokens since this page was loaded</h2>
      <dl>
        <Fact name="Input" value={count(sum("inputTokens"))} />
        {cached > 0 && <Fact name="From cache" value={count(cached)} />}
        <Fact name="Output" value={count(sum("outputTokens"))} />
        {reasoning > 0 && <Fact name="Reasoning" value={count(reasoning)} />}
        {costOf(usage, prices) !== "" && <Fact name="Cost" value={costOf(usage, prices)} />}
        <Fact name="Models" value={[...new Set(usage.map(({ model }) => model ?? "unknown"))].join(", ")} />
      </dl>
    </section>
  );
}

function Context({ context }: { context: ContextUse }) {
  const rows = [
    ["System", context.system],
    ["Tools", context.tools],
    ["History", context.history],
    ["This run", context.run],
  ] as const;
  return (
    <section>
      <h2>Context window</h2>
      <p class="panel-line">
        {count(context.total)} of {count(context.size)} tokens
      </p>
      <p class="panel-line">Without room for more, the oldest messages are summarised or left out.</p>
      <dl class="bars">
        {rows.map(([name, tokens]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <meter min={0} max={context.size} value={tokens} aria-label={name} />
              {count(tokens)}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
