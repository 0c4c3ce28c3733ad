/** The arguments of a call: fields with labels, and JSON as the second view. */

import { useState } from "preact/hooks";
import { namedArguments } from "../forms/arguments";
import { asText } from "../forms/fields";
import { LongText } from "./LongText";

/** Most fields that are shown before there is only JSON. */
const MOST_FIELDS = 40;
const LONGEST_VALUE = 2_000;

interface ArgumentsProps {
  text: string;
  label: string;
}

export function Arguments({ text, label }: ArgumentsProps) {
  const [isJson, setJson] = useState(false);
  const named = text.length > 100_000 ? undefined : namedArguments(text);
  const entries = Object.entries(named ?? {});
  const hasFields = named !== undefined && entries.length <= MOST_FIELDS;
  return (
    <div class="arguments" role="group" aria-label={label}>
      <div class="arguments-head">
        <span class="call-label">{label}</span>
        {hasFields && entries.length > 0 && <ViewSwitch isJson={isJson} onChange={setJson} />}
      </div>
      {hasFields && !isJson ? (
        <Values entries={entries} />
      ) : (
        <LongText text={text || "none"} label="JSON" limit={20_000} />
      )}
    </div>
  );
}

function Values({ entries }: { entries: [string, unknown][] }) {
  if (entries.length === 0) return <p class="panel-note">none</p>;
  return (
    <dl class="argument-fields">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{shown(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function shown(value: unknown): string {
  const text = asText(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

export function ViewSwitch({ isJson, onChange }: { isJson: boolean; onChange: (isJson: boolean) => void }) {
  return (
    <button type="button" class="view-switch" aria-pressed={isJson} onClick={() => onChange(!isJson)}>
      JSON
    </button>
  );
}
