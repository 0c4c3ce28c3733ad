/** An approval of a tool call: approve it, edit its arguments, or deny it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useQuestionFocus } from "./focus";
import { pretty } from "./format";
import { Icon } from "./icons";

export interface Decision {
  isApproved: boolean;
  editedArgs?: Record<string, unknown>;
  reason: string;
}

type Mode = "ask" | "edit" | "deny";

interface ApprovalCardProps {
  tool: string;
  argumentsText: string;
  why: string;
  expiresAt?: string | undefined;
  onDecide: (decision: Decision) => void;
}

export function ApprovalCard({ tool, argumentsText, why, expiresAt, onDecide }: ApprovalCardProps) {
  const [mode, setMode] = useState<Mode>("ask");
  const [draft, setDraft] = useState(pretty(argumentsText));
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const card = useRef<HTMLElement>(null);
  useQuestionFocus(card);
  const change = (next: Mode) => {
    setMode(next);
    setError("");
    card.current?.focus();
  };
  useEffect(() => card.current?.querySelector<HTMLElement>("textarea, input")?.focus(), [mode]);
  const approveEdited = () => {
    const parsed = parseObject(draft);
    if (parsed === null) setError("The arguments must be a JSON object.");
    else onDecide({ isApproved: true, editedArgs: parsed, reason: "" });
  };
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
      {mode === "edit" ? (
        <label class="field">
          <span>Arguments</span>
          <textarea class="code" rows={6} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
        </label>
      ) : (
        <pre class="card-arguments" tabIndex={0} role="group" aria-label="Arguments">
          {pretty(argumentsText)}
        </pre>
      )}
      {mode === "deny" && (
        <label class="field">
          <span>Reason (optional; the assistant reads it)</span>
          <input
            type="text"
            maxLength={10_000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      )}
      {error !== "" && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <Actions
        mode={mode}
        onChange={change}
        onAllow={() => onDecide({ isApproved: true, reason: "" })}
        onAllowEdited={approveEdited}
        onDeny={() => onDecide({ isApproved: false, reason: reason.trim() })}
      />
    </section>
  );
}

interface ActionsProps {
  mode: Mode;
  onChange: (mode: Mode) => void;
  onAllow: () => void;
  onAllowEdited: () => void;
  onDeny: () => void;
}

/** The buttons of each step. */
function Actions({ mode, onChange, onAllow, onAllowEdited, onDeny }: ActionsProps) {
  if (mode === "ask") {
    return (
      <div class="form-actions">
        <button type="button" class="button" onClick={() => onChange("deny")}>
          Deny
        </button>
        <button type="button" class="button" onClick={() => onChange("edit")}>
          Edit
        </button>
        <button type="button" class="button primary" onClick={onAllow}>
          Allow
        </button>
      </div>
    );
  }
  return (
    <div class="form-actions">
      <button type="button" class="button" onClick={() => onChange("ask")}>
        Back
      </button>
      {mode === "edit" ? (
        <button type="button" class="button primary" onClick={onAllowEdited}>
          Allow with these
        </button>
      ) : (
        <button type="button" class="button danger" onClick={onDeny}>
          Deny
        </button>
      )}
    </div>
  );
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function clock(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString([], isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}
