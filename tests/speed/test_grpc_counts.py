"""The counts that make gRPC fast: frames and Python calls per delta of roz. No timings, as in ``test_counts``."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType

import h2.connection
import pytest
from ag_ui.core import RunAgentInput
from grpclib.client import Channel

import agui_container
from agui_container.engine.run.fairness import BURST
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.settings import Settings
from tests.behaviour.dialogues import SUCCESS
from tests.behaviour.over_grpc import RozDialogue
from tests.behaviour.server import serving
from tests.engine.doubles import make_service
from tests.requirements import requirement

PACKAGE = str(Path(agui_container.__file__).parent)
MAX_CALLS = 13.0
"""Python calls of this package per delta, from the agent's ``yield`` to the frame that carries it."""

MAX_AROUND = 12
"""Frames of a session besides those of its deltas."""


def talker(deltas: int) -> Callable[[RunAgentInput], AsyncIterator[Item]]:
    """An agent that never waits."""

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(deltas):
            yield "hello world, "

    return agent


async def play(deltas: int, wire: str) -> None:
    """Play one session of roz with a turn of so many deltas."""
    settings = Settings.model_validate({"roz_wire": wire})
    app = build_app(settings, make_service(talker(deltas), settings))
    async with serving(app) as url:
        channel = Channel("127.0.0.1", int(url.rpartition(":")[2]))
        dialogue = RozDialogue(app.state.service, "t1", channel, {}, reads_events=wire == "1.0")
        try:
            reply = await dialogue.say("hi")
            assert (reply.end, reply.text.count("hello")) == (SUCCESS, deltas)
        finally:
            await dialogue.close()
            channel.close()


async def calls_of(deltas: int, wire: str) -> int:
    """Return the number of Python calls of this package in a session with so many deltas."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await play(deltas, wire)
    finally:
        sys.setprofile(before)
    return calls


@requirement("grpc.writes")
@pytest.mark.parametrize("wire", ["0.2", "1.0", "both"])
async def test_a_delta_over_roz_takes_a_bounded_number_of_python_calls(wire: str) -> None:
    await play(1, wire)  # the first call of a process imports gRPC
    few, many = await calls_of(2 * BURST, wire), await calls_of(12 * BURST, wire)
    per_delta = (many - few) / (10 * BURST)
    print(f"{wire=} {per_delta=:.1f}")  # noqa: T201 - for docs/grpc.md
    assert per_delta <= MAX_CALLS


@requirement("grpc.writes")
async def test_deltas_that_are_ready_leave_in_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = 0
    send_data = h2.connection.H2Connection.send_data

    def count(connection: h2.connection.H2Connection, stream: int, data: bytes, *, end_stream: bool = False) -> None:
        nonlocal frames
        frames += not connection.config.client_side
        send_data(connection, stream, data, end_stream=end_stream)

    monkeypatch.setattr(h2.connection.H2Connection, "send_data", count)
    await play(6 * BURST, "0.2")
    assert 0 < frames <= 6 + MAX_AROUND
