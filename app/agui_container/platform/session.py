"""One session: its container from the cold start to SIGKILL.

Rules:

- The session's own task starts the container, pings it, freezes it and ends it. Requests only come and go.
- Idle time counts from the latest of: a request's begin, data on a socket, a change of ``time_of_last_update``. While a
  ping says HealthyBusy *and* has that field, the session is not idle. An open request alone does not count. So sessions
  behaved that others have measured (fastagent#314, bedrock-agentcore-sdk-python#471, sample-multi-agent#42).
- A container without open requests and sockets whose ping says Healthy is frozen. It runs for each ping and no longer,
  and for each request.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

import httpx

from agui_container.platform.containers import ContainerFailure, SessionContainer
from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.limits import PlatformClock, PlatformLimits
from agui_container.platform.listeners import ALL_ADDRESSES
from agui_container.platform.pings import BusyJudge, PingAnswer, PingJudge, send_ping
from agui_container.platform.rules import RuleFindings
from agui_container.platform.streams import AnswerInspector

START_POLL_SECONDS = 0.05
"""Real pause between two pings of a container that is starting."""

START_FAILED = "Runtime initialization time exceeded. Please make sure that initialization completes in {:g}s."
"""Text for the caller, also where the container has ended at once. The log has the reason."""

logger = logging.getLogger(__name__)


class SessionState(StrEnum):
    """State of a session."""

    STARTING = "starting"
    RUNNING = "running"
    FROZEN = "frozen"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class PlatformContext:
    """Surroundings of all sessions.

    Attributes:
        http: client of all containers.
        limits: figures of the platform.
        clock: the platform's clock.
        findings: takes what is seen of the contract's rules.
        freezes: False leaves idle containers running.
    """

    http: httpx.AsyncClient
    limits: PlatformLimits
    clock: PlatformClock
    findings: RuleFindings
    freezes: bool = True


class ContainerSession:
    """A session and its container.

    Args:
        session_id: id that callers give, or that the platform made.
        container: the container, not started yet.
        context: its surroundings.
    """

    def __init__(self, session_id: str, container: SessionContainer, context: PlatformContext) -> None:
        self.id = session_id
        self.container = container
        self.state = SessionState.STARTING
        self.reason = "cold start"
        self.url = f"http://127.0.0.1:{container.port}"
        self._context = context
        self._limits, self._clock, self._findings = context.limits, context.clock, context.findings
        self.open_requests = 0
        self.open_sockets = 0
        self.answers: set[AnswerInspector] = set()
        """Answers of which the head has come, and not yet the end."""
        self._last_ping: PingAnswer | None = None
        self._judge = PingJudge(context.findings)
        self._busy_judge = BusyJudge(context.findings)
        self._failed_pings = 0
        self._started_at = self._active_at = context.clock.now()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wakes = asyncio.Event()
        self._stop_reason: str | None = None
        self._freezing = asyncio.Lock()

    # --- for requests ---

    async def wait_until_ready(self) -> None:
        """Wait for the end of the cold start. Raises ``PlatformRefusal`` AGENT_ERROR if it fails."""
        await asyncio.shield(self._ready)

    @asynccontextmanager
    async def use(self, *, socket: bool = False) -> AsyncIterator[None]:
        """Keep the container running for a request or a socket, and thaw it first.

        Raises:
            PlatformRefusal: SESSION_BUSY if the session is ending.
        """
        self.touch()
        self._count(socket=socket, change=1)
        try:
            await self._thaw()
            if self.state is not SessionState.RUNNING:
                raise PlatformRefusal(PlatformError.SESSION_BUSY)
            yield
        finally:
            self._count(socket=socket, change=-1)
            self._wakes.set()

    def touch(self) -> None:
        """Count a request or data on a socket as activity."""
        self._active_at = self._clock.now()

    def request_stop(self, reason: str) -> None:
        """End the session soon. The task of ``run`` ends once its container is gone."""
        self._stop_reason = self._stop_reason or reason
        self._wakes.set()

    def describe(self) -> Mapping[str, object]:
        """Return what ``/_platform`` shows."""
        now = self._clock.now()
        return {
            "sessionId": self.id,
            "state": self.state,
            "reason": self.reason,
            "container": self.container.name,
            "port": self.container.port,
            "ageSeconds": round(now - self._started_at),
            "idleSeconds": round(now - self._active_at),
            "openRequests": self.open_requests,
            "openSockets": self.open_sockets,
            "ping": None if self._last_ping is None else self._last_ping.describe(),
        }

    def _count(self, *, socket: bool, change: int) -> None:
        self._judge.forget_moves()
        if socket:
            self.open_sockets += change
        else:
            self.open_requests += change

    # --- the life of the container ---

    async def run(self) -> None:
        """Start the container, watch it until there is a reason to end it, and end it. Nothing of it is left."""
        self._decide(SessionState.STARTING, f"starting: cold start on port {self.container.port}")
        try:
            await self.container.start()
            exited = asyncio.create_task(self.container.wait(), name=f"exit of session {self.id}")
            exited.add_done_callback(lambda _: self._wakes.set())
            reason = await self._become_ready(exited) or await self._watch(exited)
            await self._stop(reason, exited)
        except ContainerFailure as failure:
            await self.container.kill()
            self._decide(SessionState.ENDED, f"ended: {failure}")
        finally:
            self._fail_start()  # it has no effect once the container was healthy
            if self.state is not SessionState.ENDED:
                await self.container.kill()

    async def _become_ready(self, exited: asyncio.Task[str]) -> str | None:
        """Ping until the container is healthy. Return the reason if it does not become so."""
        limit, began = self._limits.start_seconds, time.monotonic()
        while not exited.done() and self._stop_reason is None:
            self._last_ping = await send_ping(self._context.http, self.url, self._limits.ping_answer_seconds)
            took = time.monotonic() - began
            if self._last_ping.failure is None:
                self._judge.feed(self._last_ping, run_is_open=False)
                self._findings.hold("start.in-time", f"healthy after {took:.1f} s")
                self._judge_listeners()
                self._decide(SessionState.RUNNING, f"running: healthy after {took:.1f} s")
                self._ready.set_result(None)
                return None
            if took >= limit:
                break
            await asyncio.wait([exited], timeout=START_POLL_SECONDS)
        self._fail_start()
        if self._stop_reason is not None:
            return self._stop_reason
        if exited.done():
            reason = f"{exited.result()} before /ping was healthy"
        else:
            reason = f"/ping was not healthy within {limit:g} s: {self._last_ping and self._last_ping.failure}"
            self._judge_listeners()
        self._findings.break_rule("start.in-time", reason)
        return f"failed: {reason}"

    def _fail_start(self) -> None:
        if not self._ready.done():
            text = START_FAILED.format(self._limits.start_seconds)
            self._ready.set_exception(PlatformRefusal(PlatformError.AGENT_ERROR, text))
            self._ready.exception()  # the caller may be gone

    def _judge_listeners(self) -> None:
        """Look where the container listens, if that can be seen."""
        listeners = self.container.listeners()
        if listeners is None:
            return
        own = [listener for listener in listeners if listener.port == self.container.port]
        shown = ", ".join(f"{host}:{port}" for host, port in listeners) or "nowhere"
        port = f"it was given {self.container.port} and listens on {shown}"
        self._findings.judge("listen.port", holds=bool(own), detail=port)
        if own:
            on_all = any(listener.host in ALL_ADDRESSES for listener in own)
            self._findings.judge("listen.host", holds=on_all, detail=f"it listens on {shown}")

    async def _watch(self, exited: asyncio.Task[str]) -> str:
        """Ping, and freeze, until there is a reason to end the session. Return the reason."""
        while True:
            await self._pause()
            if exited.done():
                return f"lost: the container {exited.result()}"
            if self._stop_reason is not None:
                return self._stop_reason
            if self._clock.now() - self._started_at >= self._limits.lifetime_seconds:
                return f"reaped: maxLifetime {self._limits.lifetime_seconds:g} s"
            await self._ping_and_freeze()
            if self._failed_pings >= self._limits.failed_pings:
                return f"reaped: unhealthy, {self._failed_pings} pings failed in a row"
            if self._is_idle():
                return f"reaped: idle {self._limits.idle_seconds:g} s"

    async def _pause(self) -> None:
        """Wait for the next ping, or until something has happened."""
        with suppress(TimeoutError):
            async with self._clock.timeout(self._limits.ping_seconds):
                await self._wakes.wait()
        self._wakes.clear()

    def _is_idle(self) -> bool:
        """Return True if the session has been idle for too long."""
        if self._last_ping is not None and self._last_ping.holds_session:
            return False
        return self._clock.now() - self._active_at >= self._limits.idle_seconds

    async def _ping_and_freeze(self) -> None:
        """Ping, and freeze a container that has nothing to do. A frozen one runs for the ping."""
        if self.state is not SessionState.FROZEN:
            await self._ping()
            async with self._freezing:
                if self._is_quiet():
                    await self.container.freeze()
                    reason = "frozen: no request is open, and the ping does not say HealthyBusy"
                    self._decide(SessionState.FROZEN, reason)
            return
        async with self._freezing:
            if self.state is SessionState.FROZEN:
                await self.container.thaw()
                await self._ping()
                if self._is_quiet():
                    await self.container.freeze()
                else:
                    self._decide(SessionState.RUNNING, "thawed: there is something to do")

    def _is_quiet(self) -> bool:
        """Return True if the container may be frozen: nothing is open, and nothing has happened since the last ping."""
        ping, is_used = self._last_ping, self.open_requests + self.open_sockets > 0 or self._wakes.is_set()
        return self._context.freezes and not is_used and ping is not None and ping.failure is None and not ping.is_busy

    async def _ping(self) -> None:
        open_runs = [answer.run for answer in self.answers if answer.run.is_open]
        self._busy_judge.begin(self.answers)
        ping = await send_ping(self._context.http, self.url, self._limits.ping_answer_seconds)
        self._failed_pings = 0 if ping.failure is None else self._failed_pings + 1
        if ping.failure is not None:
            logger.warning("session %s ping failed: %s", self.id, ping.failure)
        last = self._last_ping
        if last is not None and ping.failure is None and ping.changed_at != last.changed_at:
            self.touch()
        self._judge.feed(ping, run_is_open=any(run.is_open for run in open_runs))
        self._busy_judge.feed(ping)
        self._last_ping = ping

    async def _thaw(self) -> None:
        async with self._freezing:
            if self.state is SessionState.FROZEN:
                await self.container.thaw()
                self._decide(SessionState.RUNNING, "thawed: a request")

    async def _stop(self, reason: str, exited: asyncio.Task[str]) -> None:
        """End the container: SIGTERM, then SIGKILL for it and all that it has started."""
        was_frozen = self.state is SessionState.FROZEN
        self._decide(SessionState.STOPPING, reason)
        try:
            if was_frozen:
                await self.container.thaw()
            if not exited.done():
                await self.container.terminate()
                await asyncio.wait([exited], timeout=self._limits.stop_seconds)
                detail = f"it was still there {self._limits.stop_seconds:g} s after SIGTERM"
                self._findings.judge("session.stop", holds=exited.done(), detail=detail)
        except ContainerFailure as failure:
            logger.warning("session %s not stopped in order: %s", self.id, failure)
        await self.container.kill()
        self._decide(SessionState.ENDED, f"ended: the container {await exited}")

    def _decide(self, state: SessionState, reason: str) -> None:
        """Take a decision, and log it."""
        self.state, self.reason = state, reason
        logger.info("session %s %s", self.id, reason)
