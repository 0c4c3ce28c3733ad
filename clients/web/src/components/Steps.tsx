/** The steps of the run that an agent has named. */

import type { Step } from "../state/types";
import { Icon } from "./icons";

export function Steps({ steps, isRunning }: { steps: readonly Step[]; isRunning: boolean }) {
  if (steps.length === 0) return null;
  return (
    <ol class="steps" aria-label="Steps">
      {steps.map((step, index) => (
        <li key={index} class={`step step-${step.status}`}>
          {step.status === "finished" ? <Icon name="check" /> : <span class={isRunning ? "spinner" : "step-dot"} />}
          {step.name}
        </li>
      ))}
    </ol>
  );
}
