"""What model calls cost, in tokens.

Rule: numbers that make no sense count as none and never harm a run. Source: AG-UI spec 1.1,
events/lifecycle#token-usage.
"""

from collections.abc import Iterable

from ag_ui.core import TokenUsage


def tokens_of(usage: Iterable[TokenUsage]) -> int:
    """The tokens of these model calls, input and output."""
    return sum(each.total_tokens or (each.input_tokens or 0) + (each.output_tokens or 0) for each in usage)
