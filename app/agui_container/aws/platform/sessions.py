"""Sessions: their containers from the cold start to SIGKILL.

Rules:

- One id, one container. A session that is starting or ending is busy, for everybody but the caller who started it.
- The session's own task starts the container, pings it, freezes it and ends it. Requests only come and go.
- Idle time counts from the latest of: a request's begin, data on a socket, a change of ``time_of_last_update``. While a
  ping says HealthyBusy *and* has that field, the session is not idle. An open request alone does not count. So sessions
  behaved that others have measured (fastagent#314, bedrock-agentcore-sdk-python#471, sample-multi-agent#42).
- A container without open requests and sockets whose ping says Healthy is frozen. It runs for each ping and no longer,
  and for each request.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum

import httpx

from agui_container.aws.platform.containers import PingAnswer, send_ping
from agui_container.aws.platform.errors import PlatformError, PlatformRefusal
from agui_container.aws.platform.headers import SESSION_ID
from agui_container.aws.platform.options import PlatformOptions

ID = re.compile(r"[\x21-\x7e]{33,256}")
"""Form of a session id. Source: ``runtimeSessionId`` of InvokeAgentRuntime, which has a length and no pattern."""

START_POLL_SECONDS = 0.05
"""Real pause between two pings of a container that is starting."""

START_FAILED = "Runtime initialization time exceeded. Please make sure that initialization completes in {:g}s."
"""Text for the caller, also where the container has ended at once. The log has the reason."""

logger = logging.getLogger(__name__)


class SessionState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    FROZEN = "frozen"
    STOPPING = "stopping"


class ContainerSession:
    """A session and its container, in a task that ends once the container is gone."""

    def __init__(self, session_id: str, options: PlatformOptions, http: httpx.AsyncClient) -> None:
        self.id = session_id
        self.container = options.make_container()
        self.options = options
        self.http = http
        self.state = SessionState.STARTING
        self.reason = ""
        """Reason of the state."""
        self.open_uses = 0
        """Requests and sockets."""
        self._limits = options.limits
        self._last_ping = PingAnswer("no ping was sent")
        self._failed_pings = 0
        self._started_at = self._active_at = options.now()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wakes = asyncio.Event()
        self._stop_reason: str | None = None
        self.task = asyncio.create_task(self._run(), name=f"session {session_id}")

    # --- for requests ---

    async def wait_until_ready(self) -> None:
        """Wait for the end of the cold start. Raises ``PlatformRefusal`` AGENT_ERROR if it fails."""
        await asyncio.shield(self._ready)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Keep the container running for a request or a socket. Raises ``PlatformRefusal`` if the session is ending."""
        if self.state is SessionState.FROZEN:
            self.container.thaw()
            self._decide(SessionState.RUNNING, "thawed: a request")
        if self.state is not SessionState.RUNNING:
            raise PlatformRefusal(PlatformError.SESSION_BUSY)
        self.touch()
        self.open_uses += 1
        try:
            yield
        finally:
            self.open_uses -= 1
            self._wakes.set()

    def touch(self) -> None:
        """Count a request or data on a socket as activity."""
        self._active_at = self.options.now()

    def request_stop(self, reason: str) -> None:
        self._stop_reason = self._stop_reason or reason
        self._wakes.set()

    # --- the life of the container ---

    async def _run(self) -> None:
        """Start the container, watch it until there is a reason to end it, and end it. Nothing of it is left."""
        self._decide(SessionState.STARTING, f"starting: cold start on port {self.container.port}")
        try:
            await self.container.start()
            exited = asyncio.create_task(self.container.wait(), name=f"exit of session {self.id}")
            exited.add_done_callback(lambda _: self._wakes.set())
            reason = await self._become_ready(exited) or await self._watch(exited)
            await self._stop(reason, exited)
        except OSError as error:
            self._decide(SessionState.STOPPING, f"failed: {error}")
        except Exception:
            logger.exception("session %s failed in the platform itself", self.id)
        finally:
            if not self._ready.done():
                self._ready.set_exception(
                    PlatformRefusal(PlatformError.AGENT_ERROR, START_FAILED.format(self._limits.start_seconds))
                )
                self._ready.exception()  # the caller may be gone
            await self.container.kill()
            logger.info("session %s ended: the container %s", self.id, await self.container.wait())

    async def _become_ready(self, exited: asyncio.Task[str]) -> str | None:
        """Ping until the container is healthy. Return the reason if it does not become so."""
        limit, began = self._limits.start_seconds, time.monotonic()
        while not exited.done() and self._stop_reason is None:
            ping, took = await self.ping(), time.monotonic() - began
            if ping.failure is None:
                self._decide(SessionState.RUNNING, f"running: healthy after {took:.1f} s")
                self._ready.set_result(None)
                return None
            if took >= limit:
                return f"failed: /ping was not healthy within {limit:g} s: {ping.failure}"
            await asyncio.wait([exited], timeout=START_POLL_SECONDS)
        return self._stop_reason or f"failed: {exited.result()} before /ping was healthy"

    async def _watch(self, exited: asyncio.Task[str]) -> str:
        """Ping, and freeze, until there is a reason to end the session. Return the reason."""
        limits = self._limits
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wakes.wait(), limits.ping_seconds)
            self._wakes.clear()
            if exited.done():
                return f"lost: the container {exited.result()}"
            if self._stop_reason is not None:
                return self._stop_reason
            if self.options.now() - self._started_at >= limits.lifetime_seconds:
                return f"reaped: maxLifetime {limits.lifetime_seconds:g} s"
            await self._ping_and_freeze()
            if self._failed_pings >= limits.failed_pings:
                return f"reaped: unhealthy, {self._failed_pings} pings failed in a row"
            if not self._last_ping.holds_session and self.options.now() - self._active_at >= limits.idle_seconds:
                return f"reaped: idle {limits.idle_seconds:g} s"

    async def _ping_and_freeze(self) -> None:
        """Ping, and freeze a container that has nothing to do. A frozen one runs for the ping."""
        if self.state is SessionState.FROZEN:
            self.container.thaw()
        ping, is_used = await self.ping(), self.open_uses > 0 or self._wakes.is_set()
        is_quiet = self.options.freezes and not is_used and ping.failure is None and not ping.is_busy
        if is_quiet:
            self.container.freeze()
        if is_quiet and self.state is SessionState.RUNNING:
            self._decide(SessionState.FROZEN, "frozen: no request is open, and the ping does not say HealthyBusy")
        elif not is_quiet and self.state is SessionState.FROZEN:
            self._decide(SessionState.RUNNING, "thawed: there is something to do")

    async def send_ping(self) -> PingAnswer:
        return await send_ping(self.http, self.container.url, self._limits.ping_answer_seconds)

    async def ping(self) -> PingAnswer:
        before = self._last_ping
        ping = self._last_ping = await self.send_ping()
        self._failed_pings = self._failed_pings + 1 if ping.failure else 0
        if ping.failure is None and ping.changed_at != before.changed_at:
            self.touch()
        if ping.failure and self._ready.done():
            logger.warning("session %s ping failed: %s", self.id, ping.failure)
        return ping

    async def _stop(self, reason: str, exited: asyncio.Task[str]) -> None:
        self._decide(SessionState.STOPPING, reason)
        self.container.thaw()
        if not exited.done():
            self.container.terminate()
            await asyncio.wait([exited], timeout=self._limits.stop_seconds)

    def _decide(self, state: SessionState, reason: str) -> None:
        self.state, self.reason = state, reason
        logger.info("session %s %s", self.id, reason)


class ContainerSessions:
    def __init__(self, options: PlatformOptions, http: httpx.AsyncClient) -> None:
        self._options = options
        self._http = http
        self._sessions: dict[str, ContainerSession] = {}

    async def open(self, session_id: str) -> ContainerSession:
        """Return a running session, which is started if there is none.

        Raises:
            PlatformRefusal: SESSION_BUSY, or AGENT_ERROR if the container does not start.
        """
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = ContainerSession(session_id, self._options, self._http)
            session.task.add_done_callback(lambda _: self._sessions.pop(session_id))
            await session.wait_until_ready()
        elif session.state not in (SessionState.RUNNING, SessionState.FROZEN):
            raise PlatformRefusal(PlatformError.SESSION_BUSY)
        return session

    def stop(self, session_id: str) -> None:
        """End a session. Raises ``PlatformRefusal`` NOT_FOUND if there is none, SESSION_BUSY if it is ending."""
        session = self._sessions.get(session_id)
        if session is None:
            raise PlatformRefusal(PlatformError.NOT_FOUND, f"There is no session {session_id}.")
        if session.state is SessionState.STOPPING:
            raise PlatformRefusal(PlatformError.SESSION_BUSY)
        session.request_stop("stopped: StopRuntimeSession")

    def all(self) -> Mapping[str, ContainerSession]:
        return dict(self._sessions)

    async def aclose(self) -> None:
        for session in self._sessions.values():
            session.request_stop("stopped: the platform ends")
        if self._sessions:
            await asyncio.wait([session.task for session in self._sessions.values()])


def session_id_of(headers: Mapping[str, str]) -> str:
    """Return the id that a caller gives, or a new one. Raises ``PlatformRefusal`` VALIDATION_ERROR."""
    given = headers.get(SESSION_ID)
    if given is None:
        return str(uuid.uuid4())
    if not ID.fullmatch(given):
        message = f"The runtimeSessionId must have 33 to 256 visible characters, and this one has {len(given)}."
        raise PlatformRefusal(PlatformError.VALIDATION_ERROR, message)
    return given
