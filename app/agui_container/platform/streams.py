"""Inspection of a container's event streams against the rules of the contract.

Rule: a stream is never changed by being inspected, and what cannot be read is a finding, not an error.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ag_ui.core import BaseEvent, Event, RunStartedEvent
from pydantic import TypeAdapter, ValidationError

from agui_container.platform.rules import RuleFindings
from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.expander import Expander
from agui_container.protocol.validator import RunSequence

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)
TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
PROTOBUF = "application/vnd.ag-ui.event+proto"
MAX_SHOWN = 80


class EventInspector:
    """Inspector of the events of one run.

    Args:
        findings: takes the results.
        ids: thread and run of the input, None if the events answer no input.
    """

    def __init__(self, findings: RuleFindings, ids: tuple[str, str] | None) -> None:
        self.steps = 0
        """Events so far, without terminal ones."""
        self._findings = findings
        self._ids = ids
        self._expander = Expander(lambda: str(uuid.uuid4()))
        self._sequence = RunSequence()
        self._last = ""
        self._is_legal = self._is_from_start = True

    def feed(self, data: str | bytes) -> None:
        """Inspect one event as JSON."""
        try:
            event = EVENT.validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            self._fail(f"an event cannot be read: {first['msg']} at {'.'.join(map(str, first['loc']))}")
            return
        if not self.has_begun:
            self._start(event)
        self._last = str(event.type.value)
        self.steps += not self.has_ended
        if not self._is_from_start:
            return
        try:
            for part in self._expander.expand(event):
                self._sequence.feed(part)
        except IllegalEvent as error:
            self._fail(str(error))

    def finish(self) -> None:
        """Judge the whole run."""
        if self._is_legal and self._is_from_start:
            self._findings.hold("run.order")
        detail = f"the last event is {self._last}" if self._last else "there is no event"
        self._findings.judge("run.end", holds=self._last in TERMINAL, detail=detail)

    @property
    def has_begun(self) -> bool:
        """True once there is an event."""
        return self._last != ""

    @property
    def has_ended(self) -> bool:
        """True if the last event was a terminal one."""
        return self._last in TERMINAL

    @property
    def is_open(self) -> bool:
        """True from the first event of an input's run to its terminal one."""
        return self._ids is not None and self.has_begun and not self.has_ended

    def _start(self, event: BaseEvent) -> None:
        if isinstance(event, RunStartedEvent):
            same = self._ids is None or (event.thread_id, event.run_id) == self._ids
            self._findings.judge("run.start", holds=same, detail="RUN_STARTED has other ids than the input")
        elif self._ids is None and event.type.value != "RUN_ERROR":
            self._is_from_start = False  # the container's own request to read a run again
        elif event.type.value != "RUN_ERROR":
            self._findings.break_rule("run.start", f"the first event is {event.type.value}")

    def _fail(self, detail: str) -> None:
        self._is_legal = False
        self._findings.break_rule("run.order", detail)


class AnswerInspector:
    """Inspector of what a container sends over one connection.

    Attributes:
        run: inspector of the events of the run that the connection carries now.
        pieces: pieces that were read.
        is_awaited: False while the platform has something else to do than to wait for the next piece.
    """

    def __init__(self, run: EventInspector) -> None:
        self.run = run
        self.pieces = 0
        self.is_awaited = True

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Count a piece, and do not await the next one meanwhile."""
        self.pieces += 1
        self.is_awaited = False
        yield
        self.is_awaited = True


class StreamInspector(AnswerInspector):
    """Inspector of the bytes of one answer to ``/invocations``.

    Args:
        findings: takes the results.
        body: the request's body.
        content_type: that of the answer.
    """

    def __init__(self, findings: RuleFindings, body: bytes, content_type: str) -> None:
        super().__init__(EventInspector(findings, input_ids(body)))
        self._findings = findings
        kind = content_type.partition(";")[0].strip()
        self._is_stream = kind == "text/event-stream"
        self._is_binary = kind == PROTOBUF  # the caller has asked for it, and the contract does not know it
        self._buffer = b""
        self._bad: str | None = None if self._is_stream else f"the Content-Type is {content_type or 'missing'}"

    def feed(self, piece: bytes) -> None:
        """Inspect a piece of the body."""
        if not self._is_stream:
            return
        *frames, self._buffer = (self._buffer + piece).split(b"\n\n")
        for frame in frames:
            self._inspect(frame)

    def finish(self) -> None:
        """Judge the whole answer, if the platform itself has not cut it."""
        if self._buffer.strip():
            self._bad = self._bad or f"the stream ends inside a frame: {shown(self._buffer)}"
        if self._is_binary:
            return
        self._findings.judge("invocations.stream", holds=self._bad is None, detail=self._bad or "")
        if self._is_stream:
            self.run.finish()

    def _inspect(self, frame: bytes) -> None:
        data = [
            line for line in frame.split(b"\n") if line and not line.startswith((b":", b"id:", b"event:", b"retry:"))
        ]
        for line in data:
            if line.startswith(b"data:"):
                self.run.feed(line[5:].strip())
            else:
                self._bad = self._bad or f"a line does not begin with data: {shown(line)}"


class SocketInspector(AnswerInspector):
    """Inspector of the messages of one socket, which carries one run after the other.

    Args:
        findings: takes the results.
    """

    def __init__(self, findings: RuleFindings) -> None:
        super().__init__(EventInspector(findings, None))
        self._findings = findings
        self._inputs: list[tuple[str, str]] = []
        """Inputs whose run has not begun."""
        self._has_commands = False
        self._bad: str | None = None
        self.has_messages = False

    def feed_caller(self, message: str | bytes) -> None:
        """Take the ids of an input. Any other message may ask for a run that is not the caller's own."""
        if (ids := input_ids(message)) is None:
            self._has_commands = True
        else:
            self._inputs.append(ids)

    def feed(self, message: str | bytes) -> None:
        """Inspect one message. An object without ``type`` is the container's own, and may be anything."""
        self.has_messages = True
        try:
            content: object = json.loads(message)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            text = message.encode() if isinstance(message, str) else message
            self._bad = self._bad or f"a message is no JSON object: {shown(text)}"
        elif "type" in content:
            if content["type"] == "RUN_STARTED" or not self.run.has_begun or self._is_over():
                self._begin(content)
            self.run.feed(message)
        self._findings.judge("socket.events", holds=self._bad is None, detail=self._bad or "")

    def finish(self) -> None:
        """Judge the last run, if the container itself has closed the socket."""
        if self.run.has_begun:
            self.run.finish()

    def judge_unanswered(self) -> None:
        """Judge an input behind which the container has closed the socket without any message."""
        if self._inputs and not self.has_messages:
            self._findings.break_rule("run.end", "the socket was closed before any event")

    def _is_over(self) -> bool:
        """Return True if the next event may be of another run than the last one."""
        return self.run.has_ended and (self._has_commands or bool(self._inputs))

    def _begin(self, event: Mapping[str, object]) -> None:
        """Judge the run before, and inspect the next one."""
        self.finish()
        ids = (str(event.get("threadId")), str(event.get("runId")))
        if ids in self._inputs:
            self._inputs.remove(ids)
            self.run = EventInspector(self._findings, ids)
        else:
            is_answer = self._inputs and not self._has_commands
            self.run = EventInspector(self._findings, self._inputs.pop(0) if is_answer else None)


def input_ids(body: str | bytes) -> tuple[str, str] | None:
    """Return the thread and the run of an input, or None if the body is no input or a command of this project."""
    try:
        given = json.loads(body)
        if "command" in (given.get("forwardedProps") or {}):
            return None
        return str(given["threadId"]), str(given["runId"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def shown(text: bytes) -> str:
    """Return the beginning of a text, for a message."""
    return repr(text[:MAX_SHOWN].decode(errors="replace"))
