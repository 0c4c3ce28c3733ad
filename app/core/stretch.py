"""Deltas that go on with one another, held as what they begin with and their texts.

Rule: each is given back byte for byte. They differ in their tails alone, a text and the end of the JSON, so the tails
stand one behind another in one piece of memory: a token takes some thirty bytes there, and by itself it would take two
hundred. What a message says is read from the same bytes.
"""

from bisect import bisect_left, bisect_right
from operator import itemgetter

from ag_ui.core import EventType
from orjson import OPT_INDENT_2, dumps, loads

END = b"}"
"""Ends the JSON of an event, behind its text."""

LINE = b"\n"
"""Ends a tail here. None has one: a line break in a text is escaped."""

SEAM = b'"' + END + LINE + b'"'
"""What stands between two texts, and in none: within a text's JSON no line ends."""

BETWEEN = b",\n  "
"""What orjson writes between two texts of a list, a line for each."""

OPENING, CLOSING = len(b"[\n  "), len(b"\n]")
"""Bytes before and behind them."""

LONG = 4_096
"""Every so many bytes it is noted how many tails stand before, when somebody reads: that much is looked through."""

FEW = 3
"""Fewer deltas than this take less memory by themselves."""

SHORT = 512
"""Every so many bytes it is to be weighed: for each token that would be a twentieth of its work."""


class Stretch:
    """Deltas of one stream.

    Args:
        start: how many events of the run stand before it.
        head: what their JSON begins with, up to the text.
        event_type: of all of them.
    """

    # Slots, and one object with what tells that an item goes on with it (``deltas``): each object more is felt.
    __slots__ = ("_marks", "_weighed", "due", "end", "fresh", "head", "start", "tails", "type")

    def __init__(self, start: int, head: bytes, event_type: EventType) -> None:
        self.start = start
        self.head = head
        self.type = event_type
        self.end = start
        """How many events there are with its own."""
        self.tails = bytearray()
        """The tail of each, line by line."""
        self.fresh: list[str] = []
        """The texts that have come since and are not among them yet."""
        self.due = 0
        """How often ``SHORT`` their bytes were when they were last weighed. A small number, which is always at hand."""
        self._weighed = 0
        self._marks: list[tuple[int, int]] | None = None

    @property
    def count(self) -> int:
        """How many they are."""
        return self.end - self.start

    def take(self) -> list[bytes]:
        """``keep`` those that are fresh, and give their JSON."""
        head, is_one = self.head, len(self.fresh) == 1
        tails = self.keep()
        # Most tokens come alone, which needs no loop.
        return [head + tails] if is_one else [head + tail for tail in tails.split(LINE)]

    def keep(self) -> bytes:
        """Put those that are fresh behind the others. Their tails, line by line."""
        fresh = self.fresh
        if len(fresh) == 1:
            tails = dumps(fresh[0]) + END
        else:  # of all at once, and in lines: a text has no line break, so nothing in it looks like what stands between
            tails = dumps(fresh, option=OPT_INDENT_2)[OPENING:-CLOSING].replace(BETWEEN, END + LINE) + END
        self.end += len(fresh)
        self.tails += tails
        self.tails += LINE
        fresh.clear()
        return tails

    def weigh(self, envelope: int) -> int:
        """Bytes of those that have come since it was last weighed: the JSON of each, and ``envelope`` besides."""
        held = len(self.tails)
        before, self._weighed = self._weighed, held + self.count * (len(self.head) - len(LINE) + envelope)
        self.due = held // SHORT
        return self._weighed - before

    def read(self, after: int, last: int) -> list[bytes]:
        """The JSON of those after number ``after`` to ``last``; the first one's number is 1."""
        marks = self._marked()
        begin = marks[bisect_right(marks, after, key=_counted) - 1][1]
        beyond = bisect_left(marks, last, key=_counted)
        upto, end = marks[beyond] if beyond < len(marks) else (self.count, len(self.tails))
        wanted, head = upto - after, self.head
        tails = bytes(memoryview(self.tails)[begin : end - len(LINE)]).rsplit(LINE, wanted)
        return [head + tail for tail in tails[-wanted:][: last - after]]

    def _marked(self) -> list[tuple[int, int]]:
        """How many stand before a place in the bytes, from place to place."""
        marks = self._marks = self._marks or [(0, 0)]
        while place := self.tails.find(LINE, marks[-1][1] + LONG) + 1:
            count, begin = marks[-1]
            marks.append((count + self.tails.count(LINE, begin, place), place))
        return marks

    def types(self, after: int, last: int) -> list[EventType]:
        """Their types."""
        return [self.type] * (min(last, self.count) - after)

    def text(self) -> str:
        """What they say together."""
        if not self.count:
            return ""
        text: str = loads(self.tails.replace(SEAM, b"")[: -len(END + LINE)])
        return text

    def cut(self, count: int) -> None:
        """Keep so many, one at least."""
        kept = [data[len(self.head) :] for data in self.read(0, count)]
        self.end, self._marks = self.start + count, None
        self.tails[:] = LINE.join(kept) + LINE


_counted = itemgetter(0)

Texts = list[str | Stretch]
"""What has been said of one message or call, in order."""


def joined(texts: Texts) -> str:
    """All of it."""
    return "".join([each if isinstance(each, str) else each.text() for each in texts])
