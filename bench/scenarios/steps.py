"""Cost of each step of an event in this process, without a socket, and of our encoder beside the official one.

The steps are called as the engine calls them, on events of the measured run. The sum of the parts is less than the
whole by what lies between them (calls, the generator, turns, waking the reader).
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence

from ag_ui.core import BaseEvent, RunStartedEvent, TextMessageContentEvent
from ag_ui.encoder import EventEncoder

from agui_container.engine.admission.quota import Quota
from agui_container.engine.engine import Engine
from agui_container.engine.log.event_log import EventLog, Flusher, LogMemory
from agui_container.engine.persistence.recorder import RunOrigin
from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.engine.run.fairness import BURST
from agui_container.main import build_service
from agui_container.ports import Caller
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.delta_template import DeltaTemplate
from agui_container.protocol.encoder import encode
from agui_container.protocol.expander import Expander
from agui_container.protocol.parser import RunRequest, parse
from agui_container.protocol.validator import RunSequence
from agui_container.protocol.wire.envelope import Batch
from agui_container.protocol.wire.sse_frames import sse_frames
from agui_container.protocol.wire.ws_frames import make_frames
from agui_container.runtime.clock import SystemClock
from agui_container.settings import Settings
from bench.client import run_body
from bench.options import Extra, MeasureError, Options, Section
from bench.results import Row, compare
from bench.script import MESSAGE, TEXT, text_events

CALLS, SLICE = 2_000, 50
ROUNDS = 15
DELTAS = 1_000
NS_IN_MICRO = 1_000
OFFICIAL = "EventEncoder"
CALLER = Caller(owner="everybody", request_id="bench", session_id=None, headers={})


def measure(_: Options) -> Section:
    """The encoder, parts, then wholes."""
    whole = f"one run of {DELTAS} deltas in process, per event"
    lines = [(name, f"{cost:.2f} µs") for name, cost in asyncio.run(parts())]
    lines += [(f"{whole}: {name}", f"{asyncio.run(run(script)):.2f} µs") for name, script in SCRIPTS.items()]
    return Section(encoder(), [Extra("Our own path, per event", ("step", "time"), lines)])


def encoder() -> list[Row]:
    """Both in turn, a slice each, as a core is not as fast all the time. Theirs has ``data:`` in it, ours the write."""
    encoders = {"ours": encode, OFFICIAL: EventEncoder().encode}
    costs: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):
        slices = [[measure_slices(each) for each in encoders.values()] for _ in range(CALLS // SLICE)]
        for name, every in zip(encoders, zip(*slices, strict=True), strict=True):
            costs[name].append(statistics.fmean(every))
    return compare("encoder, a text delta: time", "µs", costs, {OFFICIAL: 6.0})


def measure_slices(encoder: Callable[[BaseEvent], object]) -> float:
    """Return the microseconds of one call, without other work."""
    events = [TextMessageContentEvent(message_id=MESSAGE, delta=TEXT)] * SLICE
    began = time.perf_counter_ns()
    for event in events:
        encoder(event)
    return (time.perf_counter_ns() - began) / SLICE / NS_IN_MICRO


SCRIPTS = {"events made beforehand": "ready", "events made by the agent": "deltas"}


async def parts() -> list[tuple[str, float]]:
    """Microseconds of each step."""
    start, event, *_ = text_events(BURST)
    transcript = Transcript()
    for each in (start, event):
        transcript.feed(each)
    quota = Quota(CapacityLimits(all_bytes=1 << 40), IdentityLimits(), SystemClock())
    sequence, log = RunSequence(), EventLog("run", LogMemory(1 << 40, quota.of("")), Flusher())
    for first in (RunStartedEvent(thread_id="thread", run_id="run"), start):
        sequence.feed(first)
    expander = Expander(lambda: MESSAGE)
    event_type, data = event.type, encode(event)

    template = DeltaTemplate.of(event, event, data, transcript)
    if template is None:
        raise MeasureError("a delta is no template for the next one")
    encode_next = template.encode_next

    batch = Batch("run", 1, [event_type] * BURST, [data] * BURST)
    steps: Sequence[tuple[str, Callable[[], object], int]] = (
        ("the agent makes a text delta", lambda: TextMessageContentEvent(message_id=MESSAGE, delta=TEXT), 1),
        ("expand: what the item stands for", lambda: expander.expand(event), 1),
        ("encode: to JSON", lambda: encode(event), 1),
        ("check: order", lambda: sequence.feed(event), 1),
        ("append: number and keep", lambda: log.append(event_type, data), 1),
        ("fast path: a delta like the last one to JSON", lambda: encode_next(event), 1),
        (f"frame: SSE, {BURST} events a write", lambda: sse_frames(batch.data, 1), BURST),
        (f"frame: WebSocket, {BURST} deltas merged", lambda: make_frames(batch.envelopes(), with_seq=False), BURST),
    )
    return [(name, time_step(step) / events) for name, step, events in steps]


def time_step(step: Callable[[], object]) -> float:
    """Return the microseconds of one call: the median of rounds."""
    costs = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(CALLS):
            step()
        costs.append((time.perf_counter_ns() - began) / CALLS / NS_IN_MICRO)
    return statistics.median(costs)


async def run(script: str) -> float:
    """Microseconds per event of whole runs through the engine, read by one reader and framed."""
    service = build_service(Settings(agent="bench.script:agent"))
    await service.open()
    await read(service, script)
    costs = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        await read(service, script)
        costs.append((time.perf_counter_ns() - began) / DELTAS / NS_IN_MICRO)
    await service.drain(0)
    return statistics.median(costs)


async def read(service: Engine, script: str) -> None:
    """One run to its end."""
    asked = parse(run_body(f"{script} {DELTAS}"))
    if isinstance(asked, RunRequest):
        reader = service.start(asked.run_input, CALLER, RunOrigin(asked.size))
        async for batch in reader:
            sse_frames(batch.data, batch.first)
        reader.close()
