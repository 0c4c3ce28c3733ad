"""Pages of lists and their tokens. All stores share them.

Rule: clients send tokens back, so every token is checked here before it reaches a database.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TypeVar

from agui_container.ports.store import BadToken

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest integer that a database column can store."""


def make_page(items: Sequence[T], limit: int, token: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """Return the first ``limit`` items, and the token of the next page or None.

    ``items`` has one item more than ``limit`` if there is a next page.
    """
    return items[:limit], token(items[limit - 1]) if len(items) > limit else None


def parse_number(token: str) -> int:
    """Return the number in a token. Raises ``BadToken``."""
    try:
        number = int(token)
    except ValueError:
        raise BadToken("not a token of this list") from None
    if not 0 <= number <= LARGEST:
        raise BadToken("not a token of this list")
    return number


def parse_last_token(token: str) -> tuple[float, int]:
    """Return the time and the number in a token that ``make_last_token`` made. Raises ``BadToken``."""
    number, _, text = token.partition(":")
    try:
        time = float(text)
    except ValueError:
        raise BadToken("not a token of this list") from None
    if not isfinite(time):
        raise BadToken("not a token of this list")
    return time, parse_number(number)


def make_last_token(time: float, number: int) -> str:
    """Return the token of a position in a list that is sorted by time, newest first."""
    return f"{number}:{time!r}"


def parse_revision(since: str | None, thread: int) -> int | None:
    number, _, text = (since or "").partition(".")
    revision = int(text) if number == str(thread) and text.isascii() and text.isdigit() else None
    return revision if revision is not None and revision <= LARGEST else None


def make_revision(thread: int, revision: int) -> str:
    """Return a token for ``parse_revision``. A thread that was deleted and created again has another number."""
    return f"{thread}.{revision}"
