"""Stand-ins around the engine: a clock that tests move, callers, inputs, and a service wired without an application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from ag_ui.core import PROTOCOL_VERSION, RunAgentInput

from agui_container.agent_factory import with_tools
from agui_container.agents.as_agent import as_agent, is_store_user, only_answers, thread_cleanup_of, with_store
from agui_container.agents.run_limits import LimitedAgent
from agui_container.engine.engine import Engine
from agui_container.engine.limits import CapacityLimits, IdentityLimits, OnDisconnect, Policy
from agui_container.engine.threads import ThreadCommands
from agui_container.main import build_capabilities, read_identity_limits
from agui_container.ports import Caller, Clock, RunLimits, Tool
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.cluster import Cluster
from agui_container.run.event_log import LogMemory
from agui_container.run.policy import OnBusy
from agui_container.run.run import Run
from agui_container.run.subscription import Subscription
from agui_container.settings import Settings
from agui_container.stores import open_store
from agui_core.commands import ThreadCommand
from tests.replicas.buses.memory_bus import MemoryBus

WAIT = 120.0
"""Seconds after which a wait has failed; no test waits this long."""

START = 1_700_000_000.0
"""Time of a ``FakeClock``. It is in the past, so that what an agent stores by the real time has not expired."""

Json = dict[str, Any]


@dataclass(eq=False)
class FakeTimer:
    """A callback that waits for ``FakeClock.advance``."""

    due: float
    callback: Callable[[], None]
    on_cancel: Callable[["FakeTimer"], None]

    def cancel(self) -> None:
        self.on_cancel(self)


@dataclass
class FakeClock:
    """Time that stands still until a test moves it."""

    now: float = START
    timers: list[FakeTimer] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self.now + delay, callback, self._call_off)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the time and run the callbacks that are due, in order."""
        end = self.now + seconds
        while due := sorted((timer for timer in self.timers if timer.due <= end), key=lambda timer: timer.due):
            self.timers.remove(due[0])
            self.now = due[0].due
            due[0].callback()
        self.now = end

    def _call_off(self, timer: FakeTimer) -> None:
        if timer in self.timers:
            self.timers.remove(timer)


def make_service(  # noqa: PLR0913 - each has a default
    agent: object,
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    limits: CapacityLimits | None = None,
    caller_limits: IdentityLimits | None = None,
    tools: Mapping[str, Tool] | None = None,
    cluster: Cluster | None = None,
    ids: str = "id",
) -> Engine:
    """Return an engine around an agent in any accepted form. Its ids are id-1, id-2 and so on."""
    settings = settings or Settings()
    clock = clock or FakeClock()
    cluster = cluster or make_cluster(settings.store.get_secret_value(), clock, settings.principal_tokens)
    adapted = with_store(as_agent(agent, "agent"), cluster.store)
    running = adapted if is_store_user(adapted) else with_tools(adapted, settings, cluster.store, ())
    numbers = count(1)
    return Engine(
        LimitedAgent(running, RunLimits(tokens=settings.run_tokens or None)),
        Policy(
            on_busy=OnBusy(settings.on_busy),
            on_disconnect=OnDisconnect(settings.disconnect_grace),
            run_timeout=settings.run_timeout,
            limits=limits or CapacityLimits(),
            identity_limits=caller_limits or read_identity_limits(settings.caller_limits),
        ),
        cluster,
        tools=tools or {},
        capabilities=build_capabilities(adapted, settings),
        new_id=lambda: f"{ids}-{next(numbers)}",
        only_answers=only_answers(adapted),
        thread_cleanup=thread_cleanup_of(adapted),
    )


def make_cluster(store: str, clock: Clock, day_tokens: int = 0) -> Cluster:
    opened = open_store(store, clock.time)
    return Cluster(opened, MemoryBus(), clock, new_id=lambda: "replica-1", day_tokens=day_tokens)


def caller(owner: str = "everybody", **fields: Any) -> Caller:  # noqa: ANN401 - the fields of Caller
    """Return a caller whose identity is its owner, unless another one is given."""
    return Caller(owner, fields.pop("request_id", "request-1"), identity=fields.pop("identity", owner), **fields)


async def answer_of(threads: ThreadCommands, command: ThreadCommand) -> Json:
    return await threads.answer(caller(), command)


def log_memory(run_bytes: int = 1 << 40, all_bytes: int = 1 << 40) -> LogMemory:
    return LogMemory(run_bytes, all_bytes, lambda: AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "All logs are full."))


def asking(thread: str = "t1", run: str = "r1", **fields: Any) -> RunAgentInput:  # noqa: ANN401 - as in JSON
    """Return a run input with one user message."""
    return RunAgentInput.model_validate(ask(thread, run, **fields))


def ask(thread: str = "t1", run: str = "r1", text: str = "hi", **fields: Any) -> Json:  # noqa: ANN401 - as in JSON
    """Return the JSON of a run input with one user message. ``fields`` are added to it."""
    messages = [{"id": "u1", "role": "user", "content": text}]
    return {"threadId": thread, "runId": run, "protocolVersion": PROTOCOL_VERSION, "messages": messages, **fields}


async def envelopes(reader: Subscription) -> list[Envelope]:
    """Read a run to its end, and return its envelopes."""
    async with asyncio.timeout(WAIT):
        return [envelope async for batch in reader for envelope in batch.envelopes()]


@contextmanager
def raises_code(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(AppError) as caught:
        yield
    assert caught.value.code is code


def status(reader: Subscription) -> str:
    """Return the status of the run that is read. It must be a run of this process."""
    assert isinstance(reader.run, Run)
    return reader.run.status


def cancel_run(service: Engine, reader: Subscription) -> None:
    service.registry.by_key[reader.run.key].cancel()


async def eventually(condition: Callable[[], object]) -> None:
    """Let other tasks run until the condition holds."""
    async with asyncio.timeout(WAIT):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0)


async def wait_for_event(event: asyncio.Event) -> None:
    """Wait for an event, for a limited time."""
    async with asyncio.timeout(WAIT):
        await event.wait()


def agent_of(*items: object) -> Callable[[RunAgentInput], AsyncIterator[object]]:
    async def agent(_: RunAgentInput) -> AsyncIterator[object]:
        for item in items:
            yield item

    return agent


async def forever(_: RunAgentInput) -> AsyncIterator[str]:
    """Yield nothing and never end."""
    await asyncio.Event().wait()
    yield "never"
