/** An approval inside its tool call: approve it, edit its arguments, or deny it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { answerOf, type Draft, FieldError } from "../forms/answer";
import { formSchema, namedArguments, parseArguments } from "../forms/arguments";
import { formOf } from "../forms/fields";
import { Store } from "../store";
import { Arguments, ViewSwitch } from "./Arguments";
import { Fields } from "./Fields";
import { useQuestionFocus } from "./focus";
import { pretty } from "./format";
import { Icon } from "./icons";

/** A decision on a call: the payload of an answer. */
export interface Decision {
  approved: boolean;
  editedArgs?: Record<string, unknown>;
  reason?: string;
}

type Mode = "ask" | "edit" | "deny";

/** Number of cards in which the user edits arguments or writes a reason. */
export const openSteps = new Store(0);

interface ApprovalCardProps {
  tool: string;
  argumentsText: string;
  /** JSON Schema of the arguments, if it is known. */
  parameters: unknown;
  why: string;
  preview?: string | undefined;
  expiresAt?: string | undefined;
  onDecide: (decision: Decision) => void;
}

export function ApprovalCard(props: ApprovalCardProps) {
  const { tool, argumentsText, why, preview, expiresAt, onDecide } = props;
  const [mode, setMode] = useState<Mode>("ask");
  const card = useRef<HTMLElement>(null);
  useQuestionFocus(card);
  const change = (next: Mode) => {
    setMode(next);
    card.current?.focus();
  };
  useLayoutEffect(() => card.current?.querySelector<HTMLElement>("textarea, input, select")?.focus(), [mode]);
  useEffect(() => {
    if (mode === "ask") return;
    openSteps.update((count) => count + 1);
    return () => openSteps.update((count) => count - 1);
  }, [mode]);
  return (
    <section class="card approval" tabIndex={-1} ref={card} aria-label={`Approval of ${tool}`}>
      <header class="card-head">
        <Icon name="hand" />
        <h2>
          Allow <code>{tool}</code>?
        </h2>
        {expiresAt !== undefined && <span class="card-aside">until {clock(expiresAt)}</span>}
      </header>
      {why !== "" && <p class="card-why">{why}</p>}
      {preview !== undefined && <p class="card-preview">{preview}</p>}
      {mode === "edit" ? (
        <ArgumentsForm {...props} onBack={() => change("ask")} />
      ) : (
        <Arguments text={argumentsText} label="Arguments" />
      )}
      {mode === "ask" && (
        <div class="form-actions">
          <button type="button" class="button" onClick={() => change("deny")}>
            Deny
          </button>
          <button type="button" class="button" onClick={() => change("edit")}>
            Edit
          </button>
          <button type="button" class="button primary" onClick={() => onDecide({ approved: true })}>
            Allow
          </button>
        </div>
      )}
      {mode === "deny" && <DenialForm onDecide={onDecide} onBack={() => change("ask")} />}
    </section>
  );
}

interface StepProps {
  onDecide: (decision: Decision) => void;
  onBack: () => void;
}

function DenialForm({ onDecide, onBack }: StepProps) {
  const [reason, setReason] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    onDecide(reason.trim() === "" ? { approved: false } : { approved: false, reason: reason.trim() });
  };
  return (
    <form class="card-step" onSubmit={submit}>
      <label class="field">
        <span>Reason (optional; the assistant reads it)</span>
        <input
          type="text"
          maxLength={10_000}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <StepActions onBack={onBack}>
        <button type="submit" class="button danger">
          Deny
        </button>
      </StepActions>
    </form>
  );
}

/** The arguments as fields, or as JSON. What the tool would refuse is not sent, because that would use the approval up. */
function ArgumentsForm({ argumentsText, parameters, onDecide, onBack }: ApprovalCardProps & StepProps) {
  const schema = formSchema(parameters);
  const [before, setBefore] = useState(() => namedArguments(argumentsText) ?? {});
  const form = useMemo(() => (schema === undefined ? undefined : formOf(schema, before)), [schema, before]);
  const [draft, setDraft] = useState<Draft>({});
  const [text, setText] = useState<string | null>(form === undefined ? pretty(argumentsText) : null);
  const [error, setError] = useState<FieldError | null>(null);
  const element = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus(), [error]);
  /** Do something with the edited arguments, or say what is wrong with them. */
  const check = (use: (edited: Record<string, unknown>) => void) => {
    try {
      setError(null);
      use(text === null ? (answerOf(schema!, form!, draft) as typeof before) : parseArguments(text, schema));
    } catch (failure) {
      if (!(failure instanceof FieldError)) throw failure;
      setError(failure);
    }
  };
  const switchView = () =>
    check((edited) => {
      setBefore(edited);
      setDraft({});
      setText(text === null ? JSON.stringify(edited, null, 2) : null);
    });
  return (
    <form
      class="card-step"
      ref={element}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        check((editedArgs) => onDecide({ approved: true, editedArgs }));
      }}
    >
      {form !== undefined && (
        <div class="arguments-head">
          <span class="call-label">Arguments</span>
          <ViewSwitch isJson={text !== null} onChange={switchView} />
        </div>
      )}
      {text === null ? (
        <Fields form={form!} draft={draft} error={error} onChange={setDraft} />
      ) : (
        <label class="field">
          <span class={form === undefined ? "" : "visually-hidden"}>Arguments as JSON</span>
          <textarea class="code" rows={6} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      )}
      {error !== null && (text !== null || error.pointer === "") && (
        <p class="field-error" role="alert">
          {error.message}
        </p>
      )}
      <StepActions onBack={onBack}>
        <button type="submit" class="button primary">
          Allow with these
        </button>
      </StepActions>
    </form>
  );
}

function StepActions({ onBack, children }: { onBack: () => void; children: preact.ComponentChildren }) {
  return (
    <div class="form-actions">
      <button type="button" class="button" onClick={onBack}>
        Back
      </button>
      {children}
    </div>
  );
}

function clock(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString([], isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}
