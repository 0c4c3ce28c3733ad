"""Requirements for traces and metrics; a part of the manifest in ``requirements``."""

TELEMETRY = {
    "trace.run": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A run is a span that tells whose it is, how it ended and what it used.",
    ),
    "trace.calls": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Calls of models and tools are spans below their run, in the words of the conventions.",
    ),
    "trace.subagents": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Spans of a subagent are below the call that starts it.",
    ),
    "trace.ends": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A failure is recorded as a code without text; a cancelled or waiting run has not failed.",
    ),
    "trace.own": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Spans of an agent are below its run; a request that only reads invokes no agent.",
    ),
    "trace.session": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "AgentCore's session is told, and goes along as baggage.",
    ),
    "trace.content": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "The text of messages is recorded only if the operator asks for it, and images never are.",
    ),
    "trace.measured": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "The duration of runs and the tokens that they use are measured.",
    ),
    "trace.limits": (
        "docs/observability.md#metrics",
        "Refusals by limits and the use of each limit are measured, without naming callers.",
    ),
    "metrics.runs": (
        "docs/observability.md#metrics",
        "Runs are measured by outcome, with the time to the agent's first event and the reason of a cancellation.",
    ),
    "metrics.counts": (
        "docs/observability.md#metrics",
        "Open and queued runs, readers, the lag of the slowest reader, events and the lag of the loop are measured.",
    ),
    "metrics.served": (
        "docs/observability.md#prometheus",
        "With AGUI_METRICS=on, /metrics has the same numbers as OpenTelemetry.",
    ),
    "metrics.off": ("docs/observability.md#prometheus", "/metrics exists only where AGUI_METRICS is on."),
    "metrics.quiet": ("docs/observability.md#logs", "Requests for /ping and /metrics are not logged."),
    "metrics.dashboard": (
        "docs/observability.md#dashboard",
        "The dashboard shows every metric, and none that is not served.",
    ),
    "trace.exported": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Spans are exported before the process reports that it is idle; no run waits for the export.",
    ),
    "trace.harmless": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Tracing costs nothing while it is off, and a recorder that breaks harms no run.",
    ),
    "trace.server": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Under opentelemetry-instrument all of it is there, from the request down, without pings.",
    ),
    "trace.logs": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Log lines in JSON carry the ids of their trace.",
    ),
}
