"""Asynchronous access to AgentCore Memory: read histories, write turns, delete threads.

Rules:

- Calls run in threads and never block the event loop. Every call has a timeout, after which its thread is abandoned.
  Every error becomes ``StoreUnavailable``.
- The first call imports boto3 and creates the client, in that call's thread. All threads share one client. botocore
  retries throttled and failed calls with exponential backoff. A client token makes the creation of an event idempotent.
  boto3 finds credentials and region as usual; an ARN contains its own region.
- A valid name of an owner or thread is used unchanged as its id, so that the AWS console shows it. Any other name is
  replaced by its SHA-256. Different names never get the same id. The records of turns contain the original thread ids.

Source: botocore's service model ``bedrock-agentcore``, and its patterns of ``ActorId`` (255 characters) and
``SessionId`` (100). Slashes are allowed there but hashed here, because ids are parts of URL paths.
"""

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from anyio import CapacityLimiter, to_thread

from agui_container.log_values import format_fields
from agui_container.ports.records import Ending, RunKey, ThreadDelta, ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.stores.agentcore.turn_events import (
    Event,
    ThreadHistory,
    TurnPart,
    digest,
    load_turns,
    make_turn_parts,
)
from agui_container.telemetry.instruments import STORE_DURATION, CallTimer

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


def _named(name: str, fits: re.Pattern[str]) -> str:
    return name if fits.fullmatch(name) and not name.startswith(HASHED) else f"{HASHED}{digest(name)}"


CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
ATTEMPTS = 4
PAGE = 100
"""Events or sessions per page: the maximum of the service."""

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

logger = logging.getLogger(__name__)


class MemoryService:
    """One memory of the service, by its id or ARN."""

    def __init__(self, memory_id: str, call_seconds: float = CALL_SECONDS) -> None:
        self._memory_id = memory_id
        self._seconds = call_seconds
        self._limiter = CapacityLimiter(CALLS)
        self._lock = threading.Lock()
        self._boto_client: Any = None

    async def read(self, owner: str, session: str) -> ThreadHistory:
        """Return the history of the thread in a session. Raises ``StoreUnavailable``."""
        events: list[Event] = []
        size = 0
        async for page in self._events(owner, session, payloads=True):
            if size > MAX_READ:
                return ThreadHistory(load_turns(events), is_complete=False)
            events += page
            size += sum(len(str(item.get("blob", ""))) for event in page for item in event.get("payload", ()))
        return ThreadHistory(load_turns(events))

    async def write(self, thread: ThreadKey, turn: ThreadDelta, *, conversational: bool) -> None:
        """Write the events of a turn, in order. Raises ``StoreUnavailable``; a repeated call completes it."""
        for part in make_turn_parts(thread, turn, conversational=conversational):
            await self._create(thread, turn.thread.changed_at, part)

    async def remove(self, thread: ThreadKey) -> None:
        """Delete all events of a thread. Raises ``StoreUnavailable``; a repeated call completes it."""
        session = session_id(thread.thread_id)
        pages = [page async for page in self._events(thread.owner, session, payloads=False)]
        for event in (event for page in pages for event in page):
            request = {**self._session(thread.owner, session), "eventId": event["eventId"]}
            await self._call("delete_event", request, may_be_missing=True)

    async def add_tokens(self, run: RunKey, ending: Ending, at: float) -> None:
        """Write the tokens of a run. A failure is logged, because the run has its end already."""
        name, tokens = digest(json.dumps([*run, ending.ended_at])), str(ending.tokens)
        part = TurnPart(name, [{"blob": tokens}], {TOKENS: {"stringValue": tokens}})
        try:
            await self._create(_day_of(run.owner, at), at, part)
        except StoreUnavailable as error:
            logger.warning("tokens not counted %s", format_fields({"run": run.run_id, "error": error}))

    async def tokens(self, owner: str, at: float) -> int:
        """Return the tokens of an owner on the UTC day of a time. Raises ``StoreUnavailable``."""
        day = _day_of(owner, at)
        pages = [page async for page in self._events(day.owner, session_id(day.thread_id), payloads=False)]
        return sum(int(event["metadata"][TOKENS]["stringValue"]) for page in pages for event in page)

    async def sessions(self, owner: str) -> Sequence[str]:
        """Return the session ids of an owner, at most ``MAX_SESSIONS``. Raises ``StoreUnavailable``."""
        found: list[str] = []
        request = {"memoryId": self._memory_id, "actorId": actor_id(owner), "filter": {"eventFilter": "HAS_EVENTS"}}
        async for page in self._pages("list_sessions", "sessionSummaries", **request):
            found += [session["sessionId"] for session in page]
            if len(found) >= MAX_SESSIONS:
                break
        return found[:MAX_SESSIONS]

    def close(self) -> None:
        if self._boto_client is not None:
            self._boto_client.close()

    # --- calls ---

    async def _create(self, thread: ThreadKey, at: float, part: TurnPart) -> None:
        """Create an event, unless one with its token exists. ``at`` is its time in Unix seconds."""
        request = {
            **self._session(thread.owner, session_id(thread.thread_id)),
            "eventTimestamp": datetime.fromtimestamp(at, UTC),
            "payload": part.items,
            "metadata": part.metadata,
            "clientToken": part.token,
        }
        await self._call("create_event", request)

    def _events(self, owner: str, session: str, *, payloads: bool) -> AsyncIterator[Sequence[Event]]:
        return self._pages("list_events", "events", **self._session(owner, session), includePayloads=payloads)

    def _session(self, owner: str, session: str) -> dict[str, str]:
        return {"memoryId": self._memory_id, "actorId": actor_id(owner), "sessionId": session}

    async def _pages(self, operation: str, name: str, **request: object) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Iterate the pages of a list, the newest items first. A resource that the service does not know is empty."""
        while True:
            response = await self._call(operation, {**request, "maxResults": PAGE}, may_be_missing=True)
            yield response.get(name, ())
            if not response.get("nextToken"):
                return
            request["nextToken"] = response["nextToken"]

    async def _call(
        self, operation: str, request: Mapping[str, object], *, may_be_missing: bool = False
    ) -> Mapping[str, Any]:
        """Call an operation in a thread. Every exception is raised as ``StoreUnavailable``."""

        def call() -> Mapping[str, Any]:
            try:
                found: Mapping[str, Any] = getattr(self._client(), operation)(**request)
            except Exception as error:
                if not may_be_missing or error_code(error) != "ResourceNotFoundException":
                    raise
                return {}
            return found

        try:
            with CallTimer(STORE_DURATION, "agentcore", "call"):
                async with asyncio.timeout(self._seconds):
                    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
        except Exception as error:
            raise StoreUnavailable(f"AgentCore Memory: {type(error).__name__}: {error}") from error

    def _client(self) -> Any:  # noqa: ANN401 - boto3 has no types of its own
        """Return the client, which the first call creates. If that fails, the next call repeats it."""
        with self._lock:
            self._boto_client = self._boto_client or _create_boto_client(self._memory_id)
            return self._boto_client


def error_code(error: Exception) -> str:
    """Return the error code of the service's response, or an empty string if there was no response."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _create_boto_client(memory_id: str) -> Any:  # noqa: ANN401 - boto3 has no types of its own
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - imported only if it is used
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CALLS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        tcp_keepalive=True,
        user_agent_extra="agui-container",
    )
    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    match = MEMORY_ID.fullmatch(memory_id)
    region = (match and match["region"]) or os.environ.get("AWS_REGION")
    return Session(region_name=region).client("bedrock-agentcore", config=config)


def _day_of(owner: str, at: float) -> ThreadKey:
    """Return the key of an owner's tokens of a day. No caller has this owner, so no thread and no deletion is there."""
    return ThreadKey(f"tokens of {owner}", datetime.fromtimestamp(at, UTC).date().isoformat())
