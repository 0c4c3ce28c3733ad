"""Asynchronous access to AgentCore Memory: read histories, write turns, delete threads.

Rules:

- Calls run in threads and never block the event loop. Every call has a timeout. Every error becomes
  ``StoreUnavailable``.
- The first call imports boto3 and creates the client, in that call's thread. All threads share one client. botocore
  retries throttled and failed calls with exponential backoff. A client token makes the creation of an event idempotent.
  boto3 finds credentials and region as usual; an ARN contains its own region.
- A valid name of an owner or thread is used unchanged as its id, so that the AWS console shows it. Any other name is
  replaced by its SHA-256. Different names never get the same id. The records of turns contain the original thread ids.

Source: botocore's service model ``bedrock-agentcore``, and its patterns of ``ActorId`` (255 characters) and
``SessionId`` (100). Slashes are allowed there but hashed here, because ids are parts of URL paths.
"""

import asyncio
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from agui_container.log_values import format_fields
from agui_container.ports.records import Ending, RunKey, StoredMessage, ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.stores.agentcore.turn_events import (
    Event,
    ThreadHistory,
    TurnPart,
    TurnRecord,
    load_record,
    make_turn_parts,
    merge_records,
    read_records,
)
from agui_container.telemetry import STORE_DURATION, CallTimer
from agui_container.threads import DaemonThreadPool

MEMORY_ID = re.compile(
    r"(arn:(aws|aws-cn|aws-us-gov):bedrock-agentcore:(?P<region>[a-z0-9-]+):[0-9]{12}:memory/)?"
    r"[a-zA-Z][a-zA-Z0-9-_]{0,99}-[a-zA-Z0-9]{10}"
)
"""Pattern of a memory's id or ARN."""

HASHED = "sha256-"

_ACTOR = re.compile(r"(?=.{1,255}\Z)[a-zA-Z0-9][a-zA-Z0-9_-]*(:[a-zA-Z0-9_-]+)*")
_SESSION = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}")


def actor_id(owner: str) -> str:
    return _named(owner, _ACTOR)


def session_id(thread_id: str) -> str:
    return _named(thread_id, _SESSION)


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal. Lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _named(name: str, fits: re.Pattern[str]) -> str:
    return name if fits.fullmatch(name) and not name.startswith(HASHED) else f"{HASHED}{digest(name)}"


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
        paging = {"nextToken": token} if token else {}
        response = self._client().list_events(
            **self._session_arguments(owner, session), includePayloads=payloads, maxResults=PAGE, **paging
        )
        return EventPage(response["events"], response.get("nextToken"))

    def delete(self, thread: ThreadKey, event_id: str) -> None:
        self._client().delete_event(
            **self._session_arguments(thread.owner, session_id(thread.thread_id)), eventId=event_id
        )

    def sessions(self, owner: str, token: str | None) -> SessionPage:
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


CALLS = 16
"""Maximum number of concurrent calls. Further calls wait."""

CALL_SECONDS = 10.0
"""Limit of one call, including its retries and the wait for a thread."""

MAX_READ = 64_000_000
"""Characters of records after which a thread is not read further. Older turns stay unread."""

MAX_SESSIONS = 1_000
"""Maximum number of an owner's threads in a list. Threads that are not in memory are read for the list."""

TOKENS = "agui.tokens"
"""Name in the metadata of an event with the tokens of a run."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SessionContents(Struct, frozen=True):
    """Contents of a session.

    Attributes:
        history: the history of its thread, or None if there are no turns.
        is_complete: False if older events were not read.
    """

    history: ThreadHistory | None
    is_complete: bool


class MemoryService:
    """One memory of the service.

    Args:
        memory_id: id or ARN of the memory.
        call_seconds: limit of one call, in seconds.
    """

    def __init__(self, memory_id: str, call_seconds: float = CALL_SECONDS) -> None:
        self._client = MemoryClient(memory_id, CALLS)
        self._threads = DaemonThreadPool(CALLS)
        self._slots = asyncio.Semaphore(CALLS)
        self._seconds = call_seconds

    async def read(self, owner: str, session: str) -> "SessionContents":
        """Return the contents of a session. Raises ``StoreUnavailable``."""
        events: list[Event] = []
        size = 0
        async for page in self._pages(owner, session, payloads=True):
            events += page.events
            size += sum(len(str(item.get("blob", ""))) for event in page.events for item in event.get("payload", ()))
            if size > MAX_READ and page.next:
                return SessionContents(_history(events, owner), is_complete=False)
        return SessionContents(_history(events, owner), is_complete=True)

    async def write(
        self, turn: str, thread: ThreadKey, at: float, messages: Sequence[StoredMessage], text: str
    ) -> None:
        """Write the events of a turn, one after the other.

        Raises:
            StoreUnavailable: The turn is incomplete; repeating the call completes it.
        """
        for part in make_turn_parts(turn, at, messages, text):
            await self.call(partial(self._client.create, thread, at, part))

    async def remove(self, thread: ThreadKey) -> bool:
        """Delete all events of a thread. Return True if there were any.

        Raises:
            StoreUnavailable: The deletion is incomplete; repeat the call.
        """
        pages = [page async for page in self._pages(thread.owner, session_id(thread.thread_id), payloads=False)]
        ids = [str(event["eventId"]) for page in pages for event in page.events]
        for name in ids:
            await self.call(partial(self._delete_event, thread, name))
        return bool(ids)

    async def add_tokens(self, run: RunKey, ending: Ending, at: float) -> None:
        """Write the tokens of a run. A failure is logged, because the run has its end already."""
        name, tokens = digest(json.dumps([*run, ending.ended_at])), str(ending.tokens)
        part = TurnPart(name, [{"blob": tokens}], {TOKENS: {"stringValue": tokens}})
        try:
            await self.call(partial(self._client.create, _day_of(run.owner, at), at, part))
        except StoreUnavailable as error:
            logger.warning("tokens not counted %s", format_fields({"run": run.run_id, "error": error}))

    async def tokens(self, owner: str, at: float) -> int:
        """Return the tokens of an owner on the UTC day of a time. Raises ``StoreUnavailable``."""
        day = _day_of(owner, at)
        pages = [page async for page in self._pages(day.owner, session_id(day.thread_id), payloads=False)]
        return sum(int(event["metadata"][TOKENS]["stringValue"]) for page in pages for event in page.events)

    async def sessions(self, owner: str) -> Sequence[str]:
        """Return the session ids of an owner, at most ``MAX_SESSIONS``. Raises ``StoreUnavailable``."""
        session_ids: list[str] = []
        token: str | None = None
        while len(session_ids) < MAX_SESSIONS:
            page = await self.call(partial(self._session_page, owner, token))
            session_ids += page.sessions
            token = page.next
            if not token:
                break
        return session_ids[:MAX_SESSIONS]

    def _session_page(self, owner: str, token: str | None) -> SessionPage:
        return _call_or_default(lambda: self._client.sessions(owner, token), SessionPage((), None))

    def close(self) -> None:
        self._client.close()

    async def _pages(self, owner: str, session: str, *, payloads: bool) -> AsyncIterator[EventPage]:
        token: str | None = None
        while True:
            page = await self.call(partial(self._event_page, owner, session, token, payloads=payloads))
            yield page
            token = page.next
            if not token:
                return

    def _event_page(self, owner: str, session: str, token: str | None, *, payloads: bool) -> EventPage:
        return _call_or_default(
            lambda: self._client.events(owner, session, token, payloads=payloads), EventPage((), None)
        )

    def _delete_event(self, thread: ThreadKey, event_id: str) -> None:
        _call_or_default(lambda: self._client.delete(thread, event_id), None)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function of the client in a thread. Every exception is raised as ``StoreUnavailable``."""
        try:
            with CallTimer(STORE_DURATION, "agentcore", "call"):
                async with asyncio.timeout(self._seconds):
                    return await self._run_in_thread(function)
        except Exception as error:
            raise StoreUnavailable(f"AgentCore Memory: {type(error).__name__}: {error}") from error

    async def _run_in_thread(self, function: Callable[[], T]) -> T:
        """Run ``function`` in a thread and return its result.

        If the caller is cancelled, the thread continues and occupies its slot until it ends.
        """
        await self._slots.acquire()
        call = asyncio.ensure_future(self._threads.call("memory", function))
        call.add_done_callback(self._release_slot)
        await asyncio.wait([call])
        return call.result()

    def _release_slot(self, call: asyncio.Future[T]) -> None:
        self._slots.release()
        if not call.cancelled():
            call.exception()  # marks it as retrieved, because the caller may have been cancelled


def _day_of(owner: str, at: float) -> ThreadKey:
    """Return the key of an owner's tokens of a day. No caller has this owner, so no thread and no deletion is there."""
    return ThreadKey(f"tokens of {owner}", datetime.fromtimestamp(at, UTC).date().isoformat())


def _history(events: Sequence[Event], owner: str) -> ThreadHistory | None:
    records: list[TurnRecord] = []
    for turn, text in read_records(events):
        try:
            records.append(load_record(text, owner))
        except ValueError:
            logger.warning("turn record unreadable, skipped %s", format_fields({"turn": turn}))
    return merge_records(records)


def _call_or_default(function: Callable[[], T], default: T) -> T:
    """Return the result of ``function``, or ``default`` if the service does not know the resource."""
    try:
        return function()
    except Exception as error:
        if error_code(error) != "ResourceNotFoundException":
            raise
        return default
