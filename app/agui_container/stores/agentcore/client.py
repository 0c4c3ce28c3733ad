"""Typed wrapper of boto3's client for AgentCore Memory. Every method blocks.

Rule: the first call imports boto3 and creates the client, in that call's thread. All threads share one client. botocore
retries throttled and failed calls with exponential backoff. A client token makes the creation of an event idempotent.
boto3 finds credentials and region as usual; an ARN contains its own region.

Source: botocore's service model ``bedrock-agentcore``.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec import Struct

from agui_container.ports.records import ThreadKey
from agui_container.stores.agentcore.identifiers import MEMORY_ID, actor_id, session_id
from agui_container.stores.agentcore.turn_events import Event, TurnPart

CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
ATTEMPTS = 4
PAGE = 100
"""Events or sessions per page: the maximum of the service."""


class _MemoryApi(Protocol):
    def create_event(self, **request: object) -> object: ...
    def list_events(self, **request: object) -> Mapping[str, Any]: ...
    def delete_event(self, **request: object) -> object: ...
    def list_sessions(self, **request: object) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


class EventPage(Struct, frozen=True):
    """Page of events, newest first, and the token of the next page."""

    events: Sequence[Event]
    next: str | None


class SessionPage(Struct, frozen=True):
    """Page of session ids, and the token of the next page."""

    sessions: Sequence[str]
    next: str | None


class MemoryClient:
    """Client that is created by the first call. If the creation fails, the next call repeats it.

    Args:
        memory_id: id or ARN of the memory.
        threads: maximum number of threads that use the client at the same time.
    """

    def __init__(self, memory_id: str, threads: int) -> None:
        self._memory_id = memory_id
        self._connections = threads
        self._lock = threading.Lock()
        self._boto_client: _MemoryApi | None = None

    def create(self, thread: ThreadKey, at: float, part: TurnPart) -> None:
        """Create an event, unless one with its token exists. ``at`` is its time in Unix seconds."""
        self._client().create_event(
            **self._session_arguments(thread.owner, session_id(thread.thread_id)),
            eventTimestamp=datetime.fromtimestamp(at, UTC),
            payload=part.items,
            metadata=part.metadata,
            clientToken=part.token,
        )

    def events(self, owner: str, session: str, token: str | None, *, payloads: bool) -> EventPage:
        """Return a page of a session's events."""
        paging = {"nextToken": token} if token else {}
        response = self._client().list_events(
            **self._session_arguments(owner, session), includePayloads=payloads, maxResults=PAGE, **paging
        )
        return EventPage(response["events"], response.get("nextToken"))

    def delete(self, thread: ThreadKey, event_id: str) -> None:
        """Delete an event."""
        self._client().delete_event(
            **self._session_arguments(thread.owner, session_id(thread.thread_id)), eventId=event_id
        )

    def sessions(self, owner: str, token: str | None) -> SessionPage:
        """Return a page of an owner's sessions that have events."""
        paging = {"nextToken": token} if token else {}
        response = self._client().list_sessions(
            memoryId=self._memory_id,
            actorId=actor_id(owner),
            maxResults=PAGE,
            filter={"eventFilter": "HAS_EVENTS"},
            **paging,
        )
        return SessionPage(
            [session["sessionId"] for session in response["sessionSummaries"]], response.get("nextToken")
        )

    def close(self) -> None:
        """Close the client's idle connections."""
        if self._boto_client is not None:
            self._boto_client.close()

    def _session_arguments(self, owner: str, session: str) -> dict[str, str]:
        return {"memoryId": self._memory_id, "actorId": actor_id(owner), "sessionId": session}

    def _client(self) -> _MemoryApi:
        with self._lock:
            if self._boto_client is None:
                self._boto_client = _create_boto_client(self._memory_id, self._connections)
            return self._boto_client


def error_code(error: Exception) -> str:
    """Return the error code of the service's response, or an empty string if there was no response."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _create_boto_client(memory_id: str, connections: int) -> _MemoryApi:
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - imported only if it is used
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=connections,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        tcp_keepalive=True,
        user_agent_extra="agui-container",
    )
    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    match = MEMORY_ID.fullmatch(memory_id)
    region = (match and match["region"]) or os.environ.get("AWS_REGION")
    client: _MemoryApi = Session(region_name=region).client("bedrock-agentcore", config=config)
    return client
