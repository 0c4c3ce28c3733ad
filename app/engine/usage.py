"""What a run's model calls cost, all of them together: as its end tells it, and as it is stored.

Rule: numbers that make no sense are left out and never harm the run. Source: AG-UI spec 1.1,
events/lifecycle#token-usage.
"""

import logging
from collections.abc import Sequence

from ag_ui.core import TokenUsage, aggregate_token_usage
from pydantic_core import to_json

logger = logging.getLogger(__name__)


def summed(usage: Sequence[TokenUsage]) -> list[TokenUsage] | None:
    """One entry per provider and model, as AG-UI counts; None where nothing is known or it makes no sense."""
    if not usage:
        return None
    try:
        return aggregate_token_usage(list(usage)) or None
    except (AttributeError, TypeError, ValueError):
        logger.warning("the run's usage cannot be added up and is left out", exc_info=True)
        return None


def stored(usage: Sequence[TokenUsage] | None) -> bytes | None:
    """A sum as JSON."""
    return None if usage is None else to_json(usage, by_alias=True, exclude_none=True)
