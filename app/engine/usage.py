"""What a run's model calls cost, all of them together.

Rule: numbers that make no sense are left out and never harm the run. Source: AG-UI spec 1.1,
events/lifecycle#token-usage.
"""

import logging

from ag_ui.core import TokenUsage, aggregate_token_usage

logger = logging.getLogger(__name__)


def summed(usage: list[TokenUsage]) -> list[TokenUsage] | None:
    """One entry per provider and model, as AG-UI counts; None where nothing is known or it makes no sense."""
    try:
        return aggregate_token_usage(usage) or None
    except (AttributeError, TypeError, ValueError):
        logger.warning("the run's usage cannot be added up and is left out", exc_info=True)
        return None
