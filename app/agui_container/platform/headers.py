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

PASSED = ("content-type", "accept", "x-amzn-trace-id", "traceparent", "tracestate", "baggage")
"""Headers of the caller that always pass."""

RETURNED = ("content-type", "x-amzn-trace-id", "traceparent", "tracestate", "baggage")
"""Headers of the container that reach the caller, as in botocore's output. AgentCore does not say whether others do."""

MAX_ALLOWED = 20
MAX_VALUE = 4096
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,255}")
RESTRICTED = (
    *(
        "accept",
        "accept-",
        "access-control-",
        "cache-control",
        "connection",
        "content-",
        "cookie",
        "date",
        "expect",
        "forwarded",
    ),
    *("host", "if-", "keep-alive", "origin", "pragma", "proxy-", "range", "referer", "sec-", "set-cookie", "te"),
    *("trailer", "transfer-encoding", "upgrade", "user-agent", "via", "x-amz-", "x-amzn-", "x-forwarded-"),
)
"""Names, and beginnings of names, that an allow-list may not have. ``CUSTOM_PREFIX`` is the exception."""


def check_allowlist(names: Sequence[str]) -> frozenset[str]:
    """Check an allow-list as the control plane does, and return its names in lower case.

    Raises:
        ValueError: naming the entry that cannot be in one.
    """
    if len(names) > MAX_ALLOWED:
        raise ValueError(f"an allow-list has at most {MAX_ALLOWED} headers, not {len(names)}")
    for name in names:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header: letters, digits, _ and -, beginning with a letter")
        if is_restricted(name.lower()):
            raise ValueError(f"{name} is restricted by AgentCore and cannot be allowed")
    return frozenset(name.lower() for name in names)


def is_restricted(name: str) -> bool:
    """Return True if AgentCore never passes this header on an allow-list. ``name`` is in lower case."""
    if name.startswith(CUSTOM_PREFIX):
        return False
    return any(name.startswith(entry) if entry.endswith("-") else name == entry for entry in RESTRICTED)


def container_headers(
    given: Mapping[str, str], allowed: Iterable[str], own: Mapping[str, str], *, forwards_token: bool
) -> list[tuple[str, str]]:
    """Return the headers of the request to the container.

    Args:
        given: headers of the caller, with names in lower case.
        allowed: the allow-list, in lower case.
        own: headers that the platform adds.
        forwards_token: True if ``Authorization`` may pass, which an authorizer for tokens must allow too.
    """
    names = [*PASSED, *(name for name in sorted(allowed) if name != "authorization" or forwards_token)]
    passed = [(name, given[name]) for name in names if name in given and (name in PASSED or fits(given[name]))]
    return [*passed, *own.items()]


def fits(value: str) -> bool:
    """Return True if the value of an allowed header is not too long."""
    return len(value.encode("latin-1", "replace")) <= MAX_VALUE


def headers_in_query(query: str) -> Mapping[str, str]:
    """Return the headers that a socket's query carries, because browsers cannot send headers with an upgrade."""
    pairs = ((name.lower(), value) for name, value in parse_qsl(query, keep_blank_values=True))
    return {name: value for name, value in pairs if name in (SESSION_ID, USER_ID) or name.startswith(CUSTOM_PREFIX)}


def returned_headers(answered: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the container's answer that reach the caller."""
    return {name: answered[name] for name in RETURNED if name in answered}
