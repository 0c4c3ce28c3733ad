"""What model calls cost, in tokens.

Rule: numbers that make no sense count as none and never harm a run. Source: AG-UI spec 1.1,
events/lifecycle#token-usage.
"""

from collections.abc import Iterable

from ag_ui.core import TokenUsage


def count_tokens(usage: Iterable[object]) -> int:
    """The tokens of these model calls, input and output."""
    return sum(_tokens(each) for each in usage if isinstance(each, TokenUsage))


def _tokens(usage: TokenUsage) -> int:
    return _count(usage.total_tokens) or _count(usage.input_tokens) + _count(usage.output_tokens)


def _count(number: object) -> int:
    """An agent may have set anything."""
    return number if isinstance(number, int) and number > 0 else 0
