"""Random operations of two owners on three threads, against a model that says what each one must do.

The model knows threads as lists of roles and texts, and runs by their places in queues. After each operation the engine
and the model must agree on all runs, threads and readers. ``--operations`` makes the walk longer.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from agui_container.conversation.recovery import EVENT
from agui_container.engine import admission
from agui_container.engine.engine import Engine
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError
from agui_container.protocol.validator import RunSequence
from agui_container.run.run import Run
from agui_container.run.subscription import Subscription
from agui_core.commands import ThreadsDelete, ThreadsFork, ThreadsGet
from tests.engine.doubles import Json, asking, caller, eventually, make_service
from tests.engine.replicas import Replicas

OWNERS, THREADS = ("ann", "bob"), ("t1", "t2", "t3")
OPERATIONS = {"run": 8, "step": 8, "finish": 6, "fail": 1, "cancel": 3, "retry": 2, "clash": 1, "attach": 3, "leave": 2}
OPERATIONS |= {"edit": 3, "fork": 2, "delete": 1, "stranger": 1}
KINDS = ("memory", "durable")


@dataclass(eq=False)
class ModelRun:
    key: RunKey
    sent: Json
    status: str = "queued"
    steps: int = 0
    readers: int = 1

    @property
    def is_open(self) -> bool:
        return self.status in {"queued", "running"}


@dataclass
class ModelThread:
    messages: list[tuple[str, str]] = field(default_factory=list)
    queue: list[ModelRun] = field(default_factory=list)
    ended_early: list[ModelRun] = field(default_factory=list)
    """Runs that were cancelled while they waited: their messages follow when the runs before them have ended."""


class StepAgent:
    """An agent whose runs say a word for each step, and end when the test says so."""

    def __init__(self) -> None:
        self.begun = Counter[RunKey]()
        self.commands: dict[str, asyncio.Queue[str]] = {}

    async def run(self, asked: RunAgentInput, ctx: Any) -> AsyncIterator[str]:  # noqa: ANN401 - RunContext
        self.begun[RunKey(ctx.caller.owner, asked.thread_id, asked.run_id)] += 1
        commands = self.commands.setdefault(asked.run_id, asyncio.Queue())
        while (command := await commands.get()) == "step":
            yield "x"
        if command == "fail":
            raise ValueError("as told")


@dataclass(eq=False)
class ModelReader:
    run: ModelRun
    subscription: Subscription
    after: int
    seen: list[Envelope] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        async for batch in self.subscription:
            self.seen += batch.envelopes()


class Walk:
    """A walk through random operations, on one engine and on the model."""

    def __init__(self, service: Engine, agent: StepAgent, random: Random) -> None:
        self.service, self.agent, self.random = service, agent, random
        self.threads = {(owner, name): ModelThread() for owner in OWNERS for name in THREADS}
        self.exists = set[tuple[str, str]]()
        self.runs: dict[RunKey, ModelRun] = {}
        self.readers: list[ModelReader] = []
        self.number = 0
        self.log: list[str] = []

    async def operate(self) -> None:
        [name] = self.random.choices(list(OPERATIONS), list(OPERATIONS.values()))
        place = self.random.choice(OWNERS), self.random.choice(THREADS)
        self.log.append(f"{name} {place}")
        await getattr(self, f"do_{name}")(place)
        await self.settle()
        await self.check()

    async def do_run(self, place: tuple[str, str]) -> None:
        self.number += 1
        messages = [{"id": f"u{self.number}", "role": "user", "content": f"text {self.number}"}]
        await self._start(place, messages, self.random.choice(["reject", "enqueue", "interrupt"]))

    async def do_edit(self, place: tuple[str, str]) -> None:
        """Send the conversation up to a message of the user, with another text. A busy thread is left alone."""
        if self.threads[place].queue or place not in self.exists:
            return
        view = await self.service.threads.answer(caller(place[0]), ThreadsGet(thread_id=place[1]))
        messages: Any = view["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        self.number += 1
        cut = self.random.choice(users) if users else 0
        edited = {"id": f"u{self.number}", "role": "user", "content": f"text {self.number}"}
        if cut:
            self.threads[place].messages[cut:] = []
            await self._start(place, [*messages[:cut], edited], "reject")

    async def _start(self, place: tuple[str, str], messages: list[Json], on_busy: str) -> None:
        thread, key = self.threads[place], RunKey(*place, f"r{self.number}")
        sent = {"messages": messages, "forwardedProps": {"onBusy": on_busy}}
        abandoned = [run for run in thread.queue if not run.readers] if on_busy != "interrupt" else list(thread.queue)
        if on_busy == "reject" and len(abandoned) < len(thread.queue):
            assert await self._code(key, sent) == "THREAD_BUSY"
            return
        run = self.runs[key] = ModelRun(key, sent)
        for other in reversed(abandoned):
            self._end(other, "cancelled")
        thread.queue.append(run)
        self.exists.add(place)
        self._begin_next(thread)
        await self._read(run, await self.service.admit(self._input(key, sent), caller(key.owner)))

    async def do_retry(self, place: tuple[str, str]) -> None:
        if run := self._any_run(place):
            run.readers += 1
            await self._read(run, await self.service.admit(self._input(run.key, run.sent), caller(run.key.owner)))

    async def do_clash(self, place: tuple[str, str]) -> None:
        if run := self._any_run(place):
            other = {"messages": [{"id": "other", "role": "user", "content": "other"}]}
            assert await self._code(run.key, other) == "VALIDATION_ERROR"

    async def do_attach(self, place: tuple[str, str]) -> None:
        if run := self._any_run(place):
            view = await self.service.runs.find(caller(run.key.owner), *run.key[1:])
            after = self.random.randint(0, int(str(view["events"]))) if run.status != "queued" else 0
            run.readers += 1
            await self._read(run, await self.service.attach(caller(run.key.owner), *run.key[1:], after), after)

    async def do_leave(self, _: tuple[str, str]) -> None:
        if self.readers:
            reader = self.random.choice(self.readers)
            self.readers.remove(reader)
            reader.run.readers -= 1
            reader.subscription.close()

    async def do_step(self, place: tuple[str, str]) -> None:
        if (run := self._active(place)) is not None:
            run.steps += 1
            self.agent.commands[run.key.run_id].put_nowait("step")

    async def do_finish(self, place: tuple[str, str]) -> None:
        self._command(place, "finish", "finished")

    async def do_fail(self, place: tuple[str, str]) -> None:
        self._command(place, "fail", "error")

    async def do_cancel(self, place: tuple[str, str]) -> None:
        if run := self._any_run(place):
            view = await self.service.runs.cancel(caller(run.key.owner), *run.key[1:])
            if run.is_open:
                self._end(run, "cancelled")
            assert view["status"] == run.status

    async def do_stranger(self, place: tuple[str, str]) -> None:
        if run := self._any_run(place):
            with pytest.raises(AppError) as refused:
                await self.service.runs.cancel(caller("mallory"), *run.key[1:])
            assert refused.value.code == "RUN_NOT_FOUND"

    async def do_fork(self, place: tuple[str, str]) -> None:
        if place not in self.exists or self.threads[place].queue:
            return
        self.number += 1
        messages = await self._messages(place)
        if messages:
            at = self.random.randrange(len(messages))
            fork = ThreadsFork(thread_id=place[1], message_id=messages[at]["id"], new_thread_id=f"f{self.number}")
            await self.service.threads.answer(caller(place[0]), fork)
            assert await self._messages((place[0], f"f{self.number}")) == messages[: at + 1]

    async def do_delete(self, place: tuple[str, str]) -> None:
        command = ThreadsDelete(thread_id=place[1])
        if place not in self.exists:
            with pytest.raises(AppError):
                await self.service.threads.answer(caller(place[0]), command)
            return
        await self.service.threads.answer(caller(place[0]), command)
        self.exists.remove(place)
        for run in [run for run in self.runs.values() if run.key[:2] == place]:
            if run.is_open:
                run.status = "cancelled"
            del self.runs[run.key]
        self.threads[place] = ModelThread()

    def _active(self, place: tuple[str, str]) -> ModelRun | None:
        return next(iter(self.threads[place].queue), None)

    def _any_run(self, place: tuple[str, str]) -> ModelRun | None:
        runs = [run for run in self.runs.values() if run.key[:2] == place]
        return self.random.choice(runs) if runs else None

    def _command(self, place: tuple[str, str], command: str, status: str) -> None:
        if (run := self._active(place)) is not None:
            self.agent.commands[run.key.run_id].put_nowait(command)
            self._end(run, status)

    def _end(self, run: ModelRun, status: str) -> None:
        thread = self.threads[run.key.owner, run.key.thread_id]
        if run.status == "queued":
            thread.ended_early.append(run)
        elif run.steps:
            thread.messages.append(("assistant", "x" * run.steps))
        run.status = status
        thread.queue.remove(run)
        self._begin_next(thread)

    def _begin_next(self, thread: ModelThread) -> None:
        active = next(iter(thread.queue), None)
        if active is not None and active.status == "running":
            return
        before = [run for run in thread.ended_early if active is None or number_of(run) < number_of(active)]
        for run in [*sorted(before, key=number_of), *([active] if active else [])]:
            thread.messages += [(it["role"], it["content"]) for it in run.sent["messages"][-1:]]
        thread.ended_early = [run for run in thread.ended_early if run not in before]
        if active is not None:
            active.status = "running"

    def _input(self, key: RunKey, sent: Json) -> RunAgentInput:
        return asking(key.thread_id, key.run_id, **sent)

    async def _code(self, key: RunKey, sent: Json) -> str:
        with pytest.raises(AppError) as refused:
            await self.service.admit(self._input(key, sent), caller(key.owner))
        return refused.value.code

    async def _read(self, run: ModelRun, subscription: Subscription, after: int = 0) -> None:
        reader = ModelReader(run, subscription, after)
        reader.task = asyncio.create_task(reader.read())
        self.readers.append(reader)

    async def _messages(self, place: tuple[str, str]) -> list[Json]:
        view: Any = await self.service.threads.answer(caller(place[0]), ThreadsGet(thread_id=place[1]))
        return list(view["messages"])

    async def settle(self) -> None:
        """Wait until all runs that the model says have ended are stored, and the others wait for a command."""

        def is_quiet() -> bool:
            early = {run.key for thread in self.threads.values() for run in thread.ended_early}
            open_keys = early | {run.key for run in self.runs.values() if run.is_open}
            running = [run for run in self.runs.values() if run.status == "running"]
            is_at_rest = all(self.agent.commands.get(run.key.run_id, asyncio.Queue()).empty() for run in running)
            lives = self.service.registry.lives
            return {run.key for run in lives} == open_keys and is_at_rest and all(map(is_as_the_model, lives))

        def is_as_the_model(run: Run) -> bool:
            expected = self.runs[run.key]
            return not expected.is_open or (run.status == expected.status and run.log.watermark == len(run.log))

        for _ in range(5):  # a command that was taken becomes events, and these are stored
            await eventually(is_quiet)
            await asyncio.sleep(0.007 if self.service.cluster.durable else 0)

    async def check(self) -> None:
        for owner in OWNERS:
            listed: Any = {
                (it["threadId"], it["runId"]): it["status"] for it in await self.service.runs.list(caller(owner))
            }
            assert listed == {run.key[1:]: run.status for run in self.runs.values() if run.key.owner == owner}
        for place in self.exists:
            told = [(it["role"], it["content"]) for it in await self._messages(place)]
            assert told == self.threads[place].messages, place
        for key, count in self.agent.begun.items():
            assert count == 1, key
        for reader in self.readers:
            self._check_reader(reader)
        is_busy = any(run.is_open for run in self.runs.values())
        assert self.service.health.report()["status"] == ("HealthyBusy" if is_busy else "Healthy")

    def _check_reader(self, reader: ModelReader) -> None:
        seen, run = reader.seen, reader.run
        assert [it.seq for it in seen] == list(range(reader.after + 1, reader.after + 1 + len(seen)))
        others = [other for other in self.readers if other.run is run and other.after == 0]
        if others:
            assert seen == others[0].seen[reader.after :]
        assert reader.task is not None
        assert reader.task.done() is not run.is_open
        if reader.after == 0:
            sequence = RunSequence()
            for envelope in seen:
                sequence.feed(EVENT.validate_json(envelope.data))
            is_ended = bool(seen) and seen[-1].type.value in {"RUN_FINISHED", "RUN_ERROR"}
            assert is_ended is not run.is_open
            assert b"".join(it.data for it in seen).count(b'"delta":"x"') == run.steps


def number_of(run: ModelRun) -> int:
    return int(run.key.run_id[1:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
async def test_the_engine_does_what_the_model_does(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, seed: int, kind: str
) -> None:
    monkeypatch.setattr(admission, "CLOSING_READER_SECONDS", 0.0)
    agent = StepAgent()
    service = make_service(agent) if kind == "memory" else await Replicas().start(agent)
    walk = Walk(service, agent, Random(seed))  # noqa: S311 - a walk that can be repeated
    for _ in range(pytestconfig.getoption("operations")):
        try:
            await walk.operate()
        except BaseException as error:
            error.add_note("\n".join(walk.log[-30:]))
            raise
    await service.drain(0)
