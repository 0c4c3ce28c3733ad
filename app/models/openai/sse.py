"""Server-sent events as model servers write them: bytes in, the data of each event out.

Rules: pure; the same events whatever the cuts between the bytes. LF, CRLF and CR end lines; comments, events without
data and fields other than ``data`` are skipped. Two liberties: the field ``error``, as older llama.cpp servers name it,
is read as data, and ``finish`` gives an event whose closing empty line never came.
"""

from collections.abc import Sequence

MAX_EVENT = 16_000_000
"""Bytes of one event; a server that sends more is broken, and must not fill the memory."""

_FIELDS = (b"data", b"error")


class EventTooLong(Exception):
    """One event holds more than ``MAX_EVENT`` bytes."""


class SseReader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that is not ended yet
        self._data: list[bytes] = []  # of the event that is not ended yet
        self._size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """The data of every event that ends in these bytes.

        Raises:
            EventTooLong: an event is beyond reason.
        """
        if data and (self._after_cr or b"\r" in data):
            data = self._with_lf_only(data)
        if b"\n" not in data:
            self._pieces.append(data)
            self._size += len(data)
            events: Sequence[bytes] = ()
        else:
            *lines, rest = b"".join((*self._pieces, data)).split(b"\n")
            events = self._events(lines)
            self._pieces = [rest]
            self._size = len(rest) + sum(map(len, self._data))
        if self._size > MAX_EVENT:
            raise EventTooLong
        return events

    def finish(self) -> Sequence[bytes]:
        """The event that the end of the stream cut off from its empty line, if there is one."""
        return self._events([b"".join(self._pieces), b""])

    def _events(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                event = b"\n".join(self._data)
                if event:
                    events.append(event)
                self._data = []
                continue
            field, _, value = line.partition(b":")
            if field in _FIELDS:
                self._data.append(value.removeprefix(b" "))
        return events

    def _with_lf_only(self, data: bytes) -> bytes:
        """Turn every line end into LF. A CR at the end counts at once; the LF that may follow it is then dropped."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
