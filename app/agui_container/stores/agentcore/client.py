"""boto3's client of AgentCore Memory, and all that is untyped about it. Every method blocks.

Rule: boto3 is imported and a client made by the first call, in that call's thread. One client serves all threads.
Throttling and faults of the service are tried again by botocore, with pauses that grow; a repeated event is made once,
by its token. Credentials and region are found as boto3 does; an ARN names its own region.
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
"""Events or sessions of a page; the most that the service gives."""


class _MemoryApi(Protocol):
    def create_event(self, **request: object) -> object: ...
    def list_events(self, **request: object) -> Mapping[str, Any]: ...
    def delete_event(self, **request: object) -> object: ...
    def list_sessions(self, **request: object) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


class EventPage(Struct, frozen=True):
    """Events, the newest first, and the token of those before them."""

    events: Sequence[Event]
    next: str | None


class SessionPage(Struct, frozen=True):
    """Names of sessions, and the token of those that follow."""

    sessions: Sequence[str]
    next: str | None


class MemoryClient:
    """A client that is made when it is first needed. What fails is tried again by the next call.

    Args:
        memory_id: the memory's id or ARN.
        threads: how many use it at a time.
    """

    def __init__(self, memory_id: str, threads: int) -> None:
        self._memory_id = memory_id
        self._connections = threads
        self._lock = threading.Lock()
        self._boto: _MemoryApi | None = None

    def create(self, thread: ThreadKey, at: float, part: TurnPart) -> None:
        """Make an event, unless one with its token was made."""
        self._made().create_event(
            **self._named(thread.owner, session_id(thread.thread_id)),
            eventTimestamp=datetime.fromtimestamp(at, UTC),
            payload=part.items,
            metadata=part.metadata,
            clientToken=part.token,
        )

    def events(self, owner: str, session: str, token: str | None, *, payloads: bool) -> EventPage:
        """A page of a session's events."""
        more = {"nextToken": token} if token else {}
        found = self._made().list_events(
            **self._named(owner, session), includePayloads=payloads, maxResults=PAGE, **more
        )
        return EventPage(found["events"], found.get("nextToken"))

    def delete(self, thread: ThreadKey, event_id: str) -> None:
        """Remove an event."""
        self._made().delete_event(**self._named(thread.owner, session_id(thread.thread_id)), eventId=event_id)

    def sessions(self, owner: str, token: str | None) -> SessionPage:
        """A page of an owner's sessions that have events."""
        more = {"nextToken": token} if token else {}
        found = self._made().list_sessions(
            memoryId=self._memory_id,
            actorId=actor_id(owner),
            maxResults=PAGE,
            filter={"eventFilter": "HAS_EVENTS"},
            **more,
        )
        return SessionPage([session["sessionId"] for session in found["sessionSummaries"]], found.get("nextToken"))

    def close(self) -> None:
        """Let go of connections that are not in use."""
        if self._boto is not None:
            self._boto.close()

    def _named(self, owner: str, session: str) -> dict[str, str]:
        return {"memoryId": self._memory_id, "actorId": actor_id(owner), "sessionId": session}

    def _made(self) -> _MemoryApi:
        with self._lock:
            if self._boto is None:
                self._boto = _make(self._memory_id, self._connections)
            return self._boto


def error_code(error: Exception) -> str:
    """The code of the service's refusal; empty where it did not answer."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _make(memory_id: str, connections: int) -> _MemoryApi:
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - not unless it is used
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
    named = MEMORY_ID.fullmatch(memory_id)
    region = (named and named["region"]) or os.environ.get("AWS_REGION")
    client: _MemoryApi = Session(region_name=region).client("bedrock-agentcore", config=config)
    return client
