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
        "What a subagent does is below the call that hands over.",
    ),
    "trace.ends": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "What fails is told by a code and no words; what is cancelled or waits has not failed.",
    ),
    "trace.own": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "What an agent traces itself is below its run; who only reads invokes no agent.",
    ),
    "trace.session": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "AgentCore's session is told, and goes along as baggage.",
    ),
    "trace.content": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "What is said is told only where the operator asks for it, and never as images.",
    ),
    "trace.measured": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "How long runs take, and the tokens that they use, are measured.",
    ),
    "trace.limits": (
        "docs/observability.md#metrics",
        "Refusals by limits and the use of each limit are measured, without naming callers.",
    ),
    "trace.exported": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "What is recorded is sent before the process says that it is idle; nobody waits for it.",
    ),
    "trace.harmless": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Where nobody traces nothing is done for it, and a recorder that breaks harms no run.",
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
