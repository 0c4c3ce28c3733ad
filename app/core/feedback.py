"""What a user may say of a message: a direction, and reasons that fit it.

Rule: closed lists, so that what operators count means the same everywhere. The names are part of the API.
"""

from collections.abc import Mapping
from enum import StrEnum


class Sentiment(StrEnum):
    """Whether a message was good."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Category(StrEnum):
    """Why. ``OTHER`` goes with both sentiments, and says nothing without words beside it."""

    CORRECT = "correct"
    HELPFUL = "helpful"
    GOOD_TOOL_USE = "good_tool_use"
    FORMATTING = "formatting"
    INCORRECT = "incorrect"
    INCOMPLETE = "incomplete"
    TOOL_FAILURE = "tool_failure"
    REFUSED_VALID_REQUEST = "refused_valid_request"
    SLOW = "slow"
    UNSAFE = "unsafe"
    OTHER = "other"


CATEGORIES: Mapping[Sentiment, tuple[Category, ...]] = {
    Sentiment.POSITIVE: (
        Category.CORRECT,
        Category.HELPFUL,
        Category.GOOD_TOOL_USE,
        Category.FORMATTING,
        Category.OTHER,
    ),
    Sentiment.NEGATIVE: (
        Category.INCORRECT,
        Category.INCOMPLETE,
        Category.TOOL_FAILURE,
        Category.REFUSED_VALID_REQUEST,
        Category.FORMATTING,
        Category.SLOW,
        Category.UNSAFE,
        Category.OTHER,
    ),
}
"""What fits which sentiment."""
