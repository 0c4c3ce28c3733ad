"""The conformance run: situations in which each rule of the contract can be seen, one after the other.

Rule: the check calls a container directly, as AgentCore does, so nothing stands between the container and the
judgement. A situation that fails leaves its rules as they are, but a run that gets no answer is a breach.
"""

import asyncio
import json
import logging
import math
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException
from websockets.frames import CloseCode

from agui_container.aws.platform.authorizer import NoAuthorizer
from agui_container.aws.platform.containers import ContainerFactory, PingAnswer, container_client
from agui_container.aws.platform.errors import PlatformRefusal
from agui_container.aws.platform.headers import REQUEST_ID, SESSION_ID
from agui_container.aws.platform.inspection import (
    Ids,
    RunJudge,
    StreamJudge,
    json_object,
    judge_idle_pings,
    judge_ping,
    shown,
)
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from agui_container.aws.platform.relays import FrameRate, connect_container
from agui_container.aws.platform.rules import RuleFindings
from agui_container.aws.platform.sessions import ContainerSession

DEFAULT_PROMPT = "hello"
SITUATION_SECONDS = 60.0
IDLE_SECONDS = 2.5
"""Seconds of idle pings: enough to see a time of whole seconds move."""

FROZEN_SECONDS = 0.5
CHECK_LIMITS = replace(PlatformLimits(), ping_seconds=0.1, idle_seconds=math.inf, failed_pings=sys.maxsize)

NO_ROUTE = "answered 404"
SLOW_SECONDS = 1.0
"""Seconds without an event behind which a run that comes in one piece was held back."""

logger = logging.getLogger(__name__)


async def check_container(
    make_container: ContainerFactory,
    *,
    path: str = "/invocations",
    prompt: str = DEFAULT_PROMPT,
    limits: PlatformLimits = CHECK_LIMITS,
) -> RuleFindings:
    """Bring new containers into all situations, with a user message, and return what was found."""
    findings = RuleFindings()
    async with container_client() as http:
        options = PlatformOptions(make_container, NoAuthorizer(), limits, path=path, freezes=False)
        check = ContainerCheck(findings, http, options, prompt)
        async with check.session() as first:
            if first is not None:
                async with check.session() as second:
                    await check.run(first, second)
    return findings


class CheckedSession(ContainerSession):
    """A session whose pings are judged."""

    def __init__(self, options: PlatformOptions, http: httpx.AsyncClient, findings: RuleFindings) -> None:
        super().__init__(f"check-{uuid.uuid4()}", options, http)
        self.headers = {SESSION_ID: self.id, REQUEST_ID: str(uuid.uuid4())}
        self.runs: set[RunJudge] = set()
        """Runs whose answers come now."""
        self.pings: list[PingAnswer] = []
        self._findings = findings

    async def send_ping(self) -> PingAnswer:
        """Send a ping. A server that has no such route is judged by the other rules, because it serves runs already."""
        ping = await super().send_ping()
        if ping.failure != NO_ROUTE:
            return ping
        self._findings.break_rule("ping.answer", f"/ping {NO_ROUTE}")
        return PingAnswer()

    async def ping(self) -> PingAnswer:
        runs = [run for run in self.runs if run.is_open]
        ping = await super().ping()
        for run in runs:
            if run.is_open:
                run.take_ping(ping)
        if ping.failure is None:
            self.pings.append(ping)
            judge_ping(self._findings, ping)
        return ping

    @asynccontextmanager
    async def reading(self, run: RunJudge) -> AsyncIterator[None]:
        """Judge pings by a run while its answer comes."""
        self.runs.add(run)
        try:
            async with asyncio.timeout(SITUATION_SECONDS):
                yield
        finally:
            self.runs.discard(run)


class ContainerCheck:
    def __init__(self, findings: RuleFindings, http: httpx.AsyncClient, options: PlatformOptions, prompt: str) -> None:
        self._findings = findings
        self._http = http
        self._options = options
        self._prompt = prompt
        self._is_streamed = False
        self._slowest_seconds: float | None = None
        """The longest time before the first event of a run, None if no run was served."""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[CheckedSession | None]:
        """Start a session. Gives None if its container does not start. Nothing of it is left."""
        session = CheckedSession(self._options, self._http, self._findings)
        try:
            yield session if await self._has_started(session) else None
        finally:
            session.request_stop("stopped: the check ends")
            await session.container.kill()
            await asyncio.wait([session.task])

    async def run(self, first: CheckedSession, second: CheckedSession | None) -> None:
        """Run all situations. A container may do anything in one, and the report is made all the same."""
        await self._attempt("sessions", self._compare_sessions(first, second))
        for situation in (
            self._wait_idle,
            self._send_without_type,
            self._send_invalid_bodies,
            self._run_twice_at_once,
            self._leave,
            self._open_socket,
            self._freeze,
            self._stop,
        ):
            await self._attempt(situation.__name__.removeprefix("_"), situation(first))
        self._judge_streaming()

    async def _attempt(self, name: str, situation: Awaitable[None]) -> None:
        try:
            await situation
        except (TimeoutError, OSError, httpx.HTTPError, WebSocketException) as error:
            logger.warning("check: %s was not finished: %s: %s", name, type(error).__name__, error)
        except Exception:
            logger.exception("check: %s failed in the check itself", name)

    async def _has_started(self, session: CheckedSession) -> bool:
        try:
            await session.wait_until_ready()
        except PlatformRefusal:
            self._findings.break_rule("start.in-time", session.reason)
            if "ConnectError" in session.reason:  # the last ping, which is named unless the container has exited
                detail = f"nothing listens on port {session.container.port}, which it was given"
                self._findings.break_rule("listen.port", detail)
            return False
        self._findings.hold("start.in-time")
        self._findings.hold("listen.port")
        if (on_all := await session.container.is_on_all_addresses()) is not None:
            self._findings.judge("listen.host", holds=on_all, detail="it listens on 127.0.0.1 alone")
        return True

    # --- situations ---

    async def _compare_sessions(self, first: CheckedSession, second: CheckedSession | None) -> None:
        """Compare the ids of two sessions with the same prompt. Runs may derive ids from their own run id."""
        sessions = [session for session in (first, second) if session is not None]
        runs = await asyncio.gather(*map(self._invoke, sessions))
        if not runs[0].is_served:
            self._findings.break_rule("invocations.answer", f"the first input was answered {brief(runs[0])}")
        if not generated_ids(runs[0]):
            self._findings.explain("session.ids", "the run has no ids of its own")
        elif len(runs) > 1:
            shared = generated_ids(runs[0]) & generated_ids(runs[1])
            detail = f"both sessions used {', '.join(sorted(shared))}"
            self._findings.judge("session.ids", holds=not shared, detail=detail)

    async def _wait_idle(self, session: CheckedSession) -> None:
        session.pings.clear()
        await asyncio.sleep(IDLE_SECONDS)
        judge_idle_pings(self._findings, session.pings)

    async def _send_without_type(self, session: CheckedSession) -> None:
        """Send an input without Content-Type, as the AWS CLI does."""
        self._judge("invocations.any-type", await self._invoke(session, content_type=None))

    async def _send_invalid_bodies(self, session: CheckedSession) -> None:
        for body in (b"no JSON", b'{"threadId": 5}'):
            run = RunJudge(self._findings, None)
            await self._post(session, body, run)
            if run.events:
                self._findings.hold("error.visible")

    async def _run_twice_at_once(self, session: CheckedSession) -> None:
        runs = await asyncio.gather(self._invoke(session), self._invoke(session))
        self._judge("session.concurrent", *runs)

    async def _leave(self, session: CheckedSession) -> None:
        """Leave a run after its first bytes, and start another one."""
        url = f"{session.container.url}{self._options.path}"
        body = run_input(self._prompt)
        async with (
            asyncio.timeout(SITUATION_SECONDS),
            self._http.stream("POST", url, content=body, headers=session.headers) as response,
        ):
            async for _ in response.aiter_raw():
                break
        self._judge("session.abort", await self._invoke(session))

    async def _open_socket(self, session: CheckedSession) -> None:
        ids, limits = new_ids(), self._options.limits
        run, rate = RunJudge(self._findings, ids), FrameRate(limits.frames_per_second)
        try:
            async with connect_container(session.container, session.headers, limits) as connection:
                self._findings.hold("socket.upgrade")
                async with session.reading(run):
                    await connection.send(run_input(self._prompt, ids).decode())
                    while not run.has_ended:
                        self._take(await connection.recv(), run)
                        if rate.is_exceeded():
                            self._findings.break_rule("socket.frame-rate", rate.close.reason)
                            return
        except InvalidHandshake as error:
            detail = f"/ws is not served ({error}); the contract asks for SSE or WebSocket"
            self._findings.explain("socket.upgrade", detail)
            return
        except ConnectionClosed as closed:
            if closed.sent and closed.sent.code == CloseCode.MESSAGE_TOO_BIG:
                self._findings.break_rule("socket.frame-size", f"a message has more than {limits.frame_bytes} bytes")
                return
        self._findings.hold("socket.frame-size")
        self._findings.hold("socket.frame-rate")
        if run.events or "socket.events" not in self._findings.broken:
            run.finish()

    def _take(self, message: str | bytes, run: RunJudge) -> None:
        """Judge a message of a socket. An object without ``type`` is the container's own, and may be anything."""
        content = json_object(message)
        text = message.encode() if isinstance(message, str) else message
        self._findings.judge(
            "socket.events", holds=content is not None, detail=f"a message is no JSON object: {shown(text)}"
        )
        if content is not None and "type" in content:
            run.feed(content)

    async def _stop(self, session: CheckedSession) -> None:
        session.request_stop("stopped: the check ends")
        await asyncio.wait([session.task])
        detail = f"it was still there {self._options.limits.stop_seconds:g} s after SIGTERM"
        is_killed = (await session.container.wait()).endswith("SIGKILL")
        self._findings.judge("session.stop", holds=not is_killed, detail=detail)

    async def _freeze(self, session: CheckedSession) -> None:
        session.container.freeze()
        await asyncio.sleep(FROZEN_SECONDS)
        session.container.thaw()
        self._judge("session.frozen", await self._invoke(session))

    def _judge(self, rule: str, *runs: RunJudge) -> None:
        detail = f"the run was answered {' and '.join(map(brief, runs))}"
        self._findings.judge(rule, holds=all(run.is_served for run in runs), detail=detail)

    def _judge_streaming(self) -> None:
        """Judge when runs arrive. A fast run comes in one piece, so only slow ones count against a container."""
        if self._slowest_seconds is None:
            self._findings.explain("run.streamed", "no run was served")
        elif self._is_streamed:
            self._findings.hold("run.streamed")
        elif self._slowest_seconds >= SLOW_SECONDS:
            detail = f"{self._slowest_seconds:.1f} s passed before a whole run arrived at once"
            self._findings.break_rule("run.streamed", detail)
        else:
            self._findings.explain("run.streamed", "every run was too short; --prompt names one that takes a second")

    # --- requests ---

    async def _invoke(self, session: CheckedSession, content_type: str | None = "application/json") -> RunJudge:
        ids = new_ids()
        run = RunJudge(self._findings, ids)
        try:
            await self._post(session, run_input(self._prompt, ids), run, content_type)
        except (TimeoutError, httpx.HTTPError) as error:
            if isinstance(error, TimeoutError) and run.events:
                raise  # a long run breaks no rule
            detail = f"a request was answered {brief(run)}: {type(error).__name__}"
            self._findings.break_rule("invocations.answer", detail)
        return run

    async def _post(
        self, session: CheckedSession, body: bytes, run: RunJudge, content_type: str | None = "application/json"
    ) -> None:
        headers = {**session.headers, "accept": "text/event-stream"}
        headers |= {"content-type": content_type} if content_type else {}
        url, began, first_after = f"{session.container.url}{self._options.path}", time.monotonic(), 0.0
        async with (
            session.reading(run),
            self._http.stream("POST", url, content=body, headers=headers) as answer,
        ):
            if answer.is_error:
                detail = f"a request was answered {answer.status_code}: {shown(await answer.aread())}"
                self._findings.break_rule("error.visible", detail)
                return
            is_ok = answer.status_code == httpx.codes.OK
            self._findings.judge("invocations.answer", holds=is_ok, detail=f"{answer.status_code}")
            stream = StreamJudge(self._findings, run, answer.headers.get("content-type", ""))
            async for piece in answer.aiter_raw():
                stream.feed(piece)
                first_after = first_after or (time.monotonic() - began if run.events else 0.0)
            stream.finish()
        if run.is_served:
            self._is_streamed = self._is_streamed or stream.pieces > 1
            self._slowest_seconds = max(self._slowest_seconds or 0.0, first_after)


def new_ids() -> Ids:
    return str(uuid.uuid4()), str(uuid.uuid4())


def run_input(prompt: str, ids: Ids | None = None) -> bytes:
    """Return an input of a run, of a new one on a new thread without ``ids``, with every field of the contract."""
    thread, run = ids or new_ids()
    message = {"id": str(uuid.uuid4()), "role": "user", "content": prompt}
    rest = {"messages": [message], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return json.dumps({"threadId": thread, "runId": run, **rest}).encode()


def brief(run: RunJudge) -> str:
    if not run.events:
        return "without an event"
    last = {"type": "an event without a type", **run.events[-1]}
    return " ".join(str(last[name]) for name in ("type", "code") if name in last)


def generated_ids(run: RunJudge) -> set[str]:
    return {str(event[name]) for event in run.events for name in ("messageId", "toolCallId") if name in event}
