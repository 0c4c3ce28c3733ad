"""What every store does in the same way: pages of lists, and the rest of what is stored in part."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.core.wire import Envelope
from app.ports.records import RunRecord
from app.ports.store import BadToken

T = TypeVar("T")


def page_of(found: Sequence[T], limit: int, token: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The first ``limit`` of more than these, and the token of the rest, if there is one."""
    return found[:limit], token(found[limit - 1]) if len(found) > limit else None


def number_in(token: str) -> int:
    """The number that a token is. Raises ``BadToken``."""
    try:
        return int(token)
    except ValueError:
        raise BadToken("not a token of this list") from None


def last_in(token: str) -> tuple[float, int]:
    """The time and the number that a token is, as ``last_token`` made it. Raises ``BadToken``."""
    number, _, time = token.partition(":")
    try:
        return float(time), int(number)
    except ValueError:
        raise BadToken("not a token of this list") from None


def last_token(time: float, number: int) -> str:
    """The place in a list that is in the order of times, the latest first."""
    return f"{number}:{time!r}"


def revision_in(since: str | None, thread: int) -> int | None:
    """The revision that a token names; None where it names none of this thread."""
    number, _, revision = (since or "").partition(".")
    return int(revision) if number == str(thread) and revision.isascii() and revision.isdigit() else None


def revision_token(thread: int, revision: int) -> str:
    """What ``revision_in`` reads. A thread that was deleted and made again has another number."""
    return f"{thread}.{revision}"


def unstored(record: RunRecord, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
    """Those that come after what is stored. Raises ``ValueError`` for a gap."""
    rest = [envelope for envelope in envelopes if envelope.seq > record.last_seq]
    if rest and rest[0].seq != record.last_seq + 1:
        raise ValueError(f"envelope {rest[0].seq} cannot follow {record.last_seq}")
    return rest
