"""Roboto's client package under the names that both of its generations have here, and its sessions as plain values."""

import json
import os
import urllib.request
from typing import Any

try:
    from roboto.ai.agent_session import (
        AgentMessage,
        AgentSession,
        FeedbackCategory,
        FeedbackSentiment,
        RobotoAgentGoalsFailedException,
    )

    IS_OLD = True
except ImportError:
    from roboto.ai.agent_thread import (
        AgentMessage,
        FeedbackCategory,
        FeedbackSentiment,
        RobotoAgentGoalsFailedException,
    )
    from roboto.ai.agent_thread import AgentThread as AgentSession

    IS_OLD = False

__all__ = [
    "AgentMessage",
    "AgentSession",
    "FeedbackCategory",
    "FeedbackSentiment",
    "RobotoAgentGoalsFailedException",
]

TIMEOUT = 300.0


def id_of(session: AgentSession) -> str:
    return str(session.session_id if IS_OLD else session.thread_id)


def goal_statuses(session: AgentSession) -> list[str]:
    """Statuses of the goals in the record that a session holds. The older release has no public name for it."""
    record = getattr(session, f"_{type(session).__name__}__record")
    return [goal.status.value for goal in record.goals or ()]


def message_rows(session: AgentSession) -> list[Any]:
    """Messages as plain values: adjacent text is one."""
    return [[message.role.value, message.status.value, blocks(message.content)] for message in session.messages]


def blocks(content: list[Any]) -> list[Any]:
    rows: list[Any] = []
    for block in content:
        kind: Any = getattr(block, "content_type", None)
        if hasattr(block, "text"):
            if rows and isinstance(rows[-1], str):
                rows[-1] += block.text
            else:
                rows.append(block.text)
        else:
            details = {"tool_use": "input", "tool_result": "status", "error": "error_code"}
            detail = details.get(kind.value)
            rows.append([kind.value, getattr(block, detail) if detail else block.context.dataset_ids])
    return rows


def names(events: list[Any]) -> list[str]:
    """The kinds of events, of several text deltas in a row one."""
    kinds = [type(event).__name__.removeprefix("Agent").removesuffix("Event") for event in events]
    return [kind for at, kind in enumerate(kinds) if kind != "TextDelta" or kinds[at - 1 : at] != ["TextDelta"]]


def run_session(session: AgentSession) -> list[Any]:
    events: list[Any] = []
    session.run(on_event=events.append, timeout=TIMEOUT)
    return events


def send_request(path: str, body: object = None) -> dict[str, Any]:
    """Send a request without Roboto's package, and return the response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["ROBOTO_SERVICE_ENDPOINT"] + path, data)  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
        text = answer.read().decode()
    answered: dict[str, Any] = {} if path == "/invocations" else json.loads(text)
    return answered


def tokens(session: AgentSession) -> int:
    return int(next(run["tokens"] for run in send_request("/runs")["runs"] if run["threadId"] == id_of(session)))
