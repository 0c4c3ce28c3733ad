/** A card for each tool call, the questions that wait, and the reason why a run has failed. */

import { type InterruptRenderProps, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import { useState } from "react";
import { Question } from "./question";

/** Show every tool call of the server: its name, its arguments, and its result once there is one. */
export function ToolCard() {
  useRenderTool({
    name: "*",
    render: ({ name, parameters, result }) => (
      <div className="card" role="group" aria-label={`Tool ${name}`}>
        <b>{name}</b> <code>{JSON.stringify(parameters)}</code>
        <p>{result ?? "…"}</p>
      </div>
    ),
  });
  return null;
}

/** Ask what waits for an answer: whether a tool may run, where AGUI_TOOL_POLICY says so, or the values of a form. */
export function Questions() {
  useInterrupt({
    render: ({ interrupts, resolve, cancel }) => <Open interrupts={interrupts} resolve={resolve} cancel={cancel} />,
  });
  return null;
}

type OpenProps = Pick<InterruptRenderProps, "interrupts" | "resolve" | "cancel">;

/** The questions without an answer. CopilotKit sends the answers once all questions have one. */
function Open({ interrupts, resolve, cancel }: OpenProps) {
  const [answered, setAnswered] = useState<string[]>([]);
  const answer = (id: string, payload: unknown) => {
    setAnswered([...answered, id]);
    resolve(payload, id);
  };
  const open = interrupts.filter(({ id }) => !answered.includes(id));
  return (
    <>
      {open.map((each) =>
        each.reason === "tool_call" ? (
          <div key={each.id} className="card" role="group" aria-label="Approval">
            <p>{each.message}</p>
            <button type="button" onClick={() => answer(each.id, { approved: true })}>
              Approve
            </button>
            <button type="button" onClick={() => answer(each.id, { approved: false })}>
              Deny
            </button>
          </div>
        ) : (
          <Question
            key={each.id}
            question={each}
            resolve={(payload) => answer(each.id, payload)}
            cancel={() => {
              setAnswered([...answered, each.id]);
              cancel(each.id);
            }}
          />
        ),
      )}
    </>
  );
}

/** Say why a run has failed or was refused, which CopilotKit itself does not show. */
export function Failure({ text, close }: { text: string; close: () => void }) {
  return (
    <div className="card failure" role="alert">
      <p>{text}</p>
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  );
}
