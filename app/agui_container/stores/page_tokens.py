"""What every store does in the same way: pages of lists, and the rest of what is stored in part.

Rule: tokens come back from outside. What no store can have given is found here, before a database chokes on it.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TypeVar

from agui_container.ports.records import RunRecord
from agui_container.ports.store import BadToken
from agui_container.protocol.wire.envelope import Envelope

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest number that a database holds."""


def make_page(found: Sequence[T], limit: int, token: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The first ``limit`` of more than these, and the token of the rest, if there is one."""
    return found[:limit], token(found[limit - 1]) if len(found) > limit else None


def parse_number(token: str) -> int:
    """The number that a token is. Raises ``BadToken``."""
    try:
        number = int(token)
    except ValueError:
        raise BadToken("not a token of this list") from None
    if not 0 <= number <= LARGEST:
        raise BadToken("not a token of this list")
    return number


def parse_last_token(token: str) -> tuple[float, int]:
    """The time and the number that a token is, as ``make_last_token`` made it. Raises ``BadToken``."""
    number, _, text = token.partition(":")
    try:
        time = float(text)
    except ValueError:
        raise BadToken("not a token of this list") from None
    if not isfinite(time):
        raise BadToken("not a token of this list")
    return time, parse_number(number)


def make_last_token(time: float, number: int) -> str:
    """The place in a list that is in the order of times, the latest first."""
    return f"{number}:{time!r}"


def parse_revision(since: str | None, thread: int) -> int | None:
    """The revision that a token names; None where it names none of this thread."""
    number, _, text = (since or "").partition(".")
    revision = int(text) if number == str(thread) and text.isascii() and text.isdigit() else None
    return revision if revision is not None and revision <= LARGEST else None


def make_revision(thread: int, revision: int) -> str:
    """What ``parse_revision`` reads. A thread that was deleted and made again has another number."""
    return f"{thread}.{revision}"


def unpersisted(record: RunRecord, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
    """Those that come after what is stored. Raises ``ValueError`` for a gap."""
    rest = [envelope for envelope in envelopes if envelope.seq > record.last_seq]
    if rest and rest[0].seq != record.last_seq + 1:
        raise ValueError(f"envelope {rest[0].seq} cannot follow {record.last_seq}")
    return rest
