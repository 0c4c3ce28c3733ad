"""The conformance run: situations in which each rule of the contract can be seen, one after the other.

Rule: a situation only provokes. The platform, which runs here as it does for callers, judges what it sees, and a
situation judges what only the caller can see. A situation that fails leaves its rules as they are.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import NoAuthorizer
from agui_container.platform.containers import ContainerFactory, ContainerFailure, docker
from agui_container.platform.data_plane import NO_TLS, DataPlane, PlatformOptions
from agui_container.platform.headers import SESSION_ID
from agui_container.platform.limits import PlatformLimits
from agui_container.platform.rules import RuleFindings, RuleState
from agui_container.platform.serving import serving
from agui_container.platform.streams import TERMINAL

DEFAULT_PROMPT = "hello"
RUNTIME = "check"
SITUATION_SECONDS = 60.0
IDLE_SECONDS = 4.5
"""Real seconds of idle pings: enough to see a time of whole seconds move three times."""

FROZEN_SECONDS = 0.5
MAX_RUNS = 50
CHECK_LIMITS = replace(PlatformLimits(), ping_seconds=0.1)

IMAGE_PLATFORM = "linux/arm64"
ID_FIELDS = ("messageId", "toolCallId")

Events = Sequence[Mapping[str, object]]

logger = logging.getLogger(__name__)


async def check_container(
    make_container: ContainerFactory,
    *,
    path: str = "/invocations",
    prompt: str = DEFAULT_PROMPT,
    image: str | None = None,
    limits: PlatformLimits = CHECK_LIMITS,
) -> RuleFindings:
    """Run all situations against new containers and return what was found.

    Args:
        make_container: makes a container.
        path: path of invocations in the container.
        prompt: user message of each run.
        image: name of the image, if there is one.
        limits: figures of the platform.
    """
    app = build_platform(PlatformOptions(make_container, NoAuthorizer(), limits, path=path, freezes=False))
    plane: DataPlane = app.state.plane
    async with serving(app, limits) as url:
        situations = Situations(plane, f"{url}/runtimes/{RUNTIME}", prompt)
        if image is not None:
            await attempt(situations.look_at_image(image))
        await attempt(situations.first_run())
        if plane.findings["start.in-time"].state is RuleState.HELD:
            for situation in situations.all():
                await attempt(situation())
        await situations.aclose()
    return plane.findings


async def attempt(situation: Awaitable[None]) -> None:
    """Run one situation. A container may do anything in it."""
    try:
        async with asyncio.timeout(SITUATION_SECONDS):
            await situation
    except (TimeoutError, OSError, httpx.HTTPError, WebSocketException, ContainerFailure) as error:
        name = getattr(situation, "__name__", "situation")
        logger.warning("check: %s was not finished: %s: %s", name, type(error).__name__, error)


class Situations:
    """Situations for the containers of one platform.

    Args:
        plane: the data plane.
        url: address of the runtime.
        prompt: user message of each run.
    """

    def __init__(self, plane: DataPlane, url: str, prompt: str) -> None:
        self._plane = plane
        self._findings = plane.findings
        self._url = url
        self._prompt = prompt
        self._session = new_session()
        self._http = httpx.AsyncClient(timeout=SITUATION_SECONDS, verify=NO_TLS, trust_env=False)

    def all(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return the situations behind the first run, in order."""
        return (
            self.idle_pings,
            self.body_without_type,
            self.invalid_bodies,
            self.two_runs_at_once,
            self.caller_who_leaves,
            self.socket,
            self.freeze,
            self.two_sessions,
            self.stop,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def look_at_image(self, image: str) -> None:
        """Ask docker for the platform of the image."""
        found = await docker("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", image)
        self._findings.judge("image.platform", holds=found == IMAGE_PLATFORM, detail=f"the image is for {found}")

    async def first_run(self) -> None:
        """Start a session with a run."""
        events = await self._run(self._session)
        if self._findings["start.in-time"].state is RuleState.HELD and not is_served(events):
            self._findings.break_rule("invocations.answer", f"the first input was answered {brief(events)}")

    async def idle_pings(self) -> None:
        """Let the platform ping while nothing happens."""
        await asyncio.sleep(IDLE_SECONDS)

    async def body_without_type(self) -> None:
        """Send an input without Content-Type, as the AWS CLI does."""
        events = await self._run(self._session, content_type=None)
        self._findings.judge("invocations.any-type", holds=is_served(events), detail=f"it was answered {brief(events)}")

    async def invalid_bodies(self) -> None:
        """Send bodies that are no input."""
        for body in (b"no JSON", b'{"threadId": 5}'):
            if events := await self._post(self._session, body, "application/json"):
                self._findings.hold("error.visible", f"{body!r} was answered {brief(events)}")

    async def two_runs_at_once(self) -> None:
        """Start two runs of one session at the same time."""
        first, second = await asyncio.gather(self._run(self._session), self._run(self._session))
        detail = f"they were answered {brief(first)} and {brief(second)}"
        self._findings.judge("session.concurrent", holds=is_served(first) and is_served(second), detail=detail)

    async def caller_who_leaves(self) -> None:
        """Leave a run after its first bytes, and start another one."""
        body = run_input(self._prompt)
        async with self._http.stream(
            "POST", f"{self._url}/invocations", content=body, headers={SESSION_ID: self._session}
        ) as response:
            async for _ in response.aiter_raw():
                break
        events = await self._run(self._session)
        self._findings.judge("session.abort", holds=is_served(events), detail=f"it was answered {brief(events)}")

    async def socket(self) -> None:
        """Run over a WebSocket."""
        headers = {SESSION_ID: self._session}
        url = f"{self._url.replace('http', 'ws', 1)}/ws"
        async with connect(url, additional_headers=headers, proxy=None, max_size=None) as connection:
            await connection.send(run_input(self._prompt).decode())
            with suppress(ConnectionClosed):
                async for message in connection:
                    if any(f'"{name}"' in str(message) for name in TERMINAL):
                        break
        self._findings.explain("socket.upgrade", "no socket was opened")

    async def freeze(self) -> None:
        """Freeze the container for a moment."""
        container = self._plane.sessions.all()[self._session].container
        await container.freeze()
        await asyncio.sleep(FROZEN_SECONDS)
        await container.thaw()
        events = await self._run(self._session)
        self._findings.judge(
            "session.frozen", holds=is_served(events), detail=f"the next run was answered {brief(events)}"
        )

    async def two_sessions(self) -> None:
        """Run one input in two new sessions, and compare the ids."""
        body = run_input(self._prompt)
        first, second = await asyncio.gather(*(self._post(new_session(), body, "application/json") for _ in range(2)))
        shared = generated_ids(first) & generated_ids(second)
        if not generated_ids(first):
            self._findings.explain("session.ids", "the run has no ids of its own")
        else:
            detail = f"both sessions used {', '.join(sorted(shared))}"
            self._findings.judge("session.ids", holds=not shared, detail=detail)

    async def stop(self) -> None:
        """Stop the session, and wait for its container to go."""
        await self._http.post(f"{self._url}/stopruntimesession", headers={SESSION_ID: self._session})
        await self._plane.sessions.wait_until_gone(self._session)

    async def _run(self, session: str, content_type: str | None = "application/json") -> Events:
        return await self._post(session, run_input(self._prompt), content_type)

    async def _post(self, session: str, body: bytes, content_type: str | None) -> Events:
        """Invoke the runtime and return the events of the answer."""
        headers = {SESSION_ID: session, "accept": "text/event-stream"}
        if content_type is not None:
            headers["content-type"] = content_type
        answer = await self._http.post(f"{self._url}/invocations", content=body, headers=headers)
        lines = (line for line in answer.text.split("\n") if line.startswith("data:"))
        return [json.loads(line[5:]) for line in lines]


def new_session() -> str:
    """Return a session id."""
    return f"check-{uuid.uuid4()}"


def run_input(prompt: str) -> bytes:
    """Return an input of a new run on a new thread, with every field of the contract."""
    ids = {name: str(uuid.uuid4()) for name in ("threadId", "runId")}
    message = {"id": str(uuid.uuid4()), "role": "user", "content": prompt}
    rest = {"messages": [message], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return json.dumps({**ids, **rest}).encode()


def is_served(events: Events) -> bool:
    """Return True if a run has begun and ended."""
    return bool(events) and events[0].get("type") == "RUN_STARTED" and events[-1].get("type") in TERMINAL


def brief(events: Events) -> str:
    """Return the last event of an answer in a few words."""
    if not events:
        return "without an event"
    last = events[-1]
    return " ".join(str(last[name]) for name in ("type", "code") if name in last)


def generated_ids(events: Events) -> set[str]:
    """Return the ids that a run has made for its messages and calls."""
    return {str(event[name]) for event in events for name in ID_FIELDS if name in event}
