"""Judgement of what a container sends, against the rules of the contract: pings, frames, and the events of a run.

Rule: what cannot be read is a finding, not an error. Frames of Server-Sent Events are read as the official client reads
them: ``data:`` lines of one frame are joined, and LF LF ends it.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import takewhile

import msgspec
from ag_ui.core import BaseEvent, Event, EventType, RunStartedEvent
from pydantic import TypeAdapter, ValidationError

from agui_container.aws.platform.containers import BUSY, HEALTHY, PingAnswer
from agui_container.aws.platform.rules import RuleFindings
from agui_container.protocol.validator import RunSequence
from agui_core.expander import Expander, IllegalEvent

SKEW_SECONDS = 2.0

PROOF_SECONDS = 0.1
"""Seconds behind a ping after which an event proves that its run was open at the ping: nothing travels that long."""

MAX_SHOWN = 80
OTHER_FIELDS = (b":", b"id:", b"event:", b"retry:")

Ids = tuple[str, str]
"""Thread and run of an input."""

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)
TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
KNOWN_TYPES = frozenset(each.value for each in EventType)
DEPRECATED = "THINKING_"
"""Beginning of the event types that the official client turns into those of reasoning."""


def judge_ping(findings: RuleFindings, ping: PingAnswer) -> None:
    judge, kind = findings.judge, ping.content_type or "missing"
    judge("ping.answer", holds=kind == "application/json", detail=f"the Content-Type is {kind}")
    judge("ping.status", holds=ping.status in (HEALTHY, BUSY), detail=f"the status is {ping.status!r}")
    if ping.is_busy:
        judge("ping.busy-time", holds=ping.holds_session, detail="HealthyBusy comes without it")
    if ping.changed_at is None:
        findings.explain("ping.time", "the field is left out")
    else:
        at = ping.changed_at
        is_past = type(at) in (int, float) and at <= time.time() + SKEW_SECONDS  # type: ignore[operator]
        judge("ping.time", holds=is_past, detail=f"time_of_last_update is {at!r}")


def judge_idle_pings(findings: RuleFindings, pings: Sequence[PingAnswer]) -> None:
    """Judge the pings of a container that has nothing to do, from the last change of its status on."""
    last = list(takewhile(lambda ping: ping.status == pings[-1].status, reversed(pings)))
    times = {repr(ping.changed_at) for ping in last}
    if times == {"None"}:
        findings.explain("ping.still", "the field is left out")
    elif last:
        detail = f"it moved {len(times) - 1} times while the status was {last[0].status}"
        findings.judge("ping.still", holds=len(times) == 1, detail=detail)


def json_object(text: str | bytes) -> Mapping[str, object] | None:
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def shown(text: bytes) -> str:
    return repr(text[:MAX_SHOWN].decode(errors="replace"))


class RunJudge:
    """Judge of one run: its events as they come, and the pings meanwhile.

    ``ids`` are those of its input, or None for an input without any. ``events`` are those that came.
    """

    def __init__(self, findings: RuleFindings, ids: Ids | None) -> None:
        self.events: list[Mapping[str, object]] = []
        self._findings = findings
        self._ids = ids
        self._expander = Expander(lambda: str(uuid.uuid4()))
        self._sequence = RunSequence()
        self._last = ""
        self._is_legal = True
        self._not_busy: tuple[float, object] | None = None
        """Time and status of the first ping during the run that did not say HealthyBusy."""

    def feed(self, content: Mapping[str, object]) -> None:
        """Judge one event. A type that AG-UI does not have is a note, because the official client goes on."""
        self.events.append(content)
        kind = content.get("type")
        if isinstance(kind, str) and kind not in KNOWN_TYPES:
            effect = "turns it into an event of reasoning" if kind.startswith(DEPRECATED) else "drops it"
            self._findings.note(f"AG-UI 1.0 has no event {kind}: the official client {effect}")
            return
        try:
            event = EVENT.validate_python(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            self._fail(f"an event cannot be read: {first['msg']} at {'.'.join(map(str, first['loc']))}")
            return
        if not self._last:
            self._judge_start(event)
        self._last = str(event.type.value)
        if not self.has_ended and self._not_busy and time.monotonic() - self._not_busy[0] > PROOF_SECONDS:
            self._findings.break_rule("ping.busy", f"the status was {self._not_busy[1]!r} during a run")
        try:
            for part in self._expander.expand(event):
                self._sequence.feed(part)
        except IllegalEvent as error:
            self._fail(str(error))

    def take_ping(self, ping: PingAnswer) -> None:
        """Take a ping that was sent and answered while the run was open.

        One that is not busy breaks the rule only once an event follows that is not the last one, because the end of the
        run may have been on its way.
        """
        self._findings.judge("ping.during-run", holds=ping.failure is None, detail=str(ping.failure))
        if ping.is_busy:
            self._findings.hold("ping.busy")
        elif ping.failure is None and self._not_busy is None:
            self._not_busy = time.monotonic(), ping.status

    def finish(self) -> None:
        if self._last and self._is_legal:
            self._findings.hold("run.order")
        detail = f"the last event is {self._last}" if self._last else "there is no event"
        self._findings.judge("run.end", holds=self.has_ended, detail=detail)

    @property
    def has_ended(self) -> bool:
        return self._last in TERMINAL

    @property
    def is_open(self) -> bool:
        """True from the first event of an input's run to its terminal one."""
        return self._ids is not None and self._last != "" and not self.has_ended

    @property
    def is_served(self) -> bool:
        """True if it has begun and ended, whatever was between."""
        types = [event.get("type") for event in self.events]
        return bool(types) and types[0] == "RUN_STARTED" and types[-1] in TERMINAL

    def _judge_start(self, event: BaseEvent) -> None:
        if isinstance(event, RunStartedEvent):
            same = self._ids is None or (event.thread_id, event.run_id) == self._ids
            self._findings.judge("run.start", holds=same, detail="RUN_STARTED has other ids than the input")
        elif event.type.value != "RUN_ERROR":
            self._findings.break_rule("run.start", f"the first event is {event.type.value}")

    def _fail(self, detail: str) -> None:
        self._is_legal = False
        self._findings.break_rule("run.order", detail)


class StreamJudge:
    """Judge of the bytes of one answer, which carries ``run``. ``pieces`` counts those that have brought events."""

    def __init__(self, findings: RuleFindings, run: RunJudge, content_type: str) -> None:
        self.pieces = 0
        self._findings = findings
        self._run = run
        self._content_type = content_type or "missing"
        self._is_stream = self._content_type.partition(";")[0].strip() == "text/event-stream"
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        if b"\r" in piece:
            self._fail("a line ends in CR LF or CR, and the official client looks for LF LF", piece.partition(b"\r")[0])
        *frames, self._rest = (self._rest + piece.replace(b"\r", b"")).split(b"\n\n")
        found = [content for content in map(self._read, frames) if content is not None]
        self.pieces += bool(found)
        for content in found:
            self._run.feed(content)

    def finish(self) -> None:
        if not self._is_stream:
            self._findings.break_rule("invocations.stream", f"the Content-Type is {self._content_type}")
            return
        if self._rest.strip():
            self._fail("the stream ends inside a frame", self._rest)
        self._findings.hold("invocations.stream")
        self._run.finish()

    def _read(self, frame: bytes) -> Mapping[str, object] | None:
        lines = [line for line in frame.split(b"\n") if line and not line.startswith(OTHER_FIELDS)]
        for line in lines:
            if not line.startswith(b"data:"):
                self._fail("a line does not begin with data", line)
        data = b"\n".join(line.removeprefix(b"data:") for line in lines if line.startswith(b"data:"))
        found = json_object(data)
        if lines and found is None:
            self._fail("the data of a frame is no JSON object", b"\n".join(lines))
        return found

    def _fail(self, problem: str, text: bytes) -> None:
        if self._is_stream:
            self._findings.break_rule("invocations.stream", f"{problem}: {shown(text)}")
