/** Progress that an agent reports. A share between 0 and 1, or a part of a total, is shown as a bar. */

import type { ActivityMessage } from "@ag-ui/core";

export function Activity({ message }: { message: ActivityMessage }) {
  const { activityType, content } = message;
  const share = shareOf(content);
  const fields = Object.entries(content).filter(([, value]) => typeof value !== "object" || value === null);
  const nested = Object.entries(content).filter(([, value]) => typeof value === "object" && value !== null);
  return (
    <div class="activity" data-activity={activityType}>
      <div class="activity-head">
        <span class="activity-type">{activityType.replaceAll(/[_-]/g, " ")}</span>
        {share !== null && <span>{Math.round(share * 100)} %</span>}
      </div>
      {share !== null && <progress max={1} value={share} aria-label={activityType} />}
      <dl>
        {fields.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{String(value).slice(0, 500)}</dd>
          </div>
        ))}
      </dl>
      {nested.map(([name, value]) => (
        <pre key={name} tabIndex={0} role="group" aria-label={name}>
          {JSON.stringify(value, null, 2).slice(0, 4000)}
        </pre>
      ))}
    </div>
  );
}

function shareOf(content: Record<string, unknown>): number | null {
  const { progress, percent, done, total } = content;
  const share =
    typeof progress === "number"
      ? progress
      : typeof percent === "number"
        ? percent / 100
        : typeof done === "number" && typeof total === "number" && total > 0
          ? done / total
          : null;
  return share === null || !Number.isFinite(share) ? null : Math.min(1, Math.max(0, share));
}
