"""Sum of the tokens that model calls report, and what they cost.

Rule: a missing, negative or non-integer number counts as 0, because an agent's wrong report must not fail a run.
Source: AG-UI spec 1.1, events/lifecycle#token-usage.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from ag_ui.core import TokenUsage
from pydantic import TypeAdapter

USAGE = TypeAdapter(list[TokenUsage])


def count_tokens(usage: Iterable[object]) -> int:
    return sum(_tokens(each) for each in usage if isinstance(each, TokenUsage))


def _tokens(usage: TokenUsage) -> int:
    return _count(usage.total_tokens) or _count(usage.input_tokens) + _count(usage.output_tokens)


def _count(number: object) -> int:
    return number if isinstance(number, int) and number > 0 else 0


class ModelPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Price of a model, in US dollars for a million tokens. Cached input costs as other input if it has no price."""

    input: Annotated[float, msgspec.Meta(ge=0)]
    output: Annotated[float, msgspec.Meta(ge=0)]
    cached_input: Annotated[float, msgspec.Meta(ge=0)] | None = None
