"""Headers between the caller and the container.

Rule: the container sees what AgentCore lets through and nothing else: ``Content-Type`` and ``Accept`` as they came,
tracing, the session, the headers of the allow-list, and what the platform itself adds.

Sources: devguide ``runtime-header-allowlist``, botocore's ``InvokeAgentRuntime``, devguide
``runtime-get-started-websocket`` for headers in the query of a socket, and calls that others have recorded.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl

SESSION_ID = "x-amzn-bedrock-agentcore-runtime-session-id"
USER_ID = "x-amzn-bedrock-agentcore-runtime-user-id"
CUSTOM_PREFIX = "x-amzn-bedrock-agentcore-runtime-custom-"
WORKLOAD_TOKEN = "workloadaccesstoken"  # noqa: S105 - a header's name
REQUEST_ID = "x-amzn-requestid"
TRACE_ID = "x-amzn-trace-id"

TRACING = (TRACE_ID, "traceparent", "tracestate", "baggage")
PASSED = ("content-type", "accept", *TRACING)
"""Headers of the caller that always pass."""

RETURNED = ("content-type", *TRACING)
"""Headers of the container that reach the caller, as in botocore's output. AgentCore does not say whether others do."""

MAX_ALLOWED = 20
MAX_VALUE = 4096
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,255}")
RESTRICTED = re.compile(
    r"(?:accept|access-control-.*|accept-.*|cache-control|connection|content-.*|cookie|date|expect|forwarded|host|if-.*"
    r"|keep-alive|origin|pragma|proxy-.*|range|referer|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade"
    rf"|user-agent|via|x-amz-.*|x-amzn-(?!{CUSTOM_PREFIX.removeprefix('x-amzn-')}).*|x-forwarded-.*)"
)
"""Names in lower case that AgentCore never passes on an allow-list."""


def check_allowlist(names: Sequence[str]) -> frozenset[str]:
    """Check an allow-list as the control plane does, and return its names in lower case. Raises ``ValueError``."""
    if len(names) > MAX_ALLOWED:
        raise ValueError(f"an allow-list has at most {MAX_ALLOWED} headers, not {len(names)}")
    for name in names:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header: letters, digits, _ and -, beginning with a letter")
        if RESTRICTED.fullmatch(name.lower()):
            raise ValueError(f"{name} is restricted by AgentCore and cannot be allowed")
    return frozenset(name.lower() for name in names)


def container_headers(given: Mapping[str, str], allowed: Iterable[str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the request to the container: the caller's that pass, and the platform's own."""
    fitting = [name for name in allowed if len(given.get(name, "").encode("latin-1", "replace")) <= MAX_VALUE]
    return {**{name: given[name] for name in (*PASSED, *fitting) if name in given}, **own}


def headers_in_query(query: str) -> Mapping[str, str]:
    """Return the headers that a socket's query carries, because browsers cannot send headers with an upgrade."""
    pairs = ((name.lower(), value) for name, value in parse_qsl(query, keep_blank_values=True))
    return {name: value for name, value in pairs if name in (SESSION_ID, USER_ID) or name.startswith(CUSTOM_PREFIX)}
