"""Server-Sent Events: bytes in, events out, as the HTML standard says.

Lines end with CR LF, LF or CR, and with nothing else: U+2028 is text. httpx splits lines at U+2028, too, and httpx-sse
holds a stream with CR alone back by one event, therefore the parser is written here.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import codecs
import re
from dataclasses import dataclass

from agui_client.errors import AgentClientError

LINE_END = re.compile(r"\r\n|\n|\r")

MAX_EVENT = 32_000_000
"""Characters that may wait for the end of their event."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. ``id`` is None if the event names none: an earlier one says nothing about its number."""

    data: str
    id: str | None


class EventStreamParser:
    """Parses one stream. A chunk may end anywhere, also inside a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._pieces: list[str] = []  # of the line that has not ended
        self._data: list[str] = []
        self._waiting = 0
        self._id: str | None = None
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that ``chunk`` completes.

        Raises:
            AgentClientError: an event is longer than ``MAX_EVENT``.
        """
        text = self._decoder.decode(chunk)
        if not text:
            return []
        if self._ended_with_cr and text[0] == "\n":
            text = text[1:]
        self._ended_with_cr = text.endswith("\r") if text else False
        self._waiting += len(text)
        first, *others = LINE_END.split(text)
        self._pieces.append(first)
        events: list[ServerSentEvent] = []
        for piece in others:
            self._end_line("".join(self._pieces), events)
            self._pieces = [piece]
        if self._waiting > MAX_EVENT:
            raise AgentClientError(f"An event of the server has more than {MAX_EVENT} characters.")
        return events

    def _end_line(self, line: str, events: list[ServerSentEvent]) -> None:
        if not line:
            if self._data:
                events.append(ServerSentEvent("\n".join(self._data), self._id))
            self._data, self._id = [], None
            self._waiting = 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
