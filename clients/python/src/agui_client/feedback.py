"""Feedback on an answer of the agent (a feature of AGUI Container, ``docs/threads.md`` there)."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class FeedbackSentiment(StrEnum):
    """Opinion about an answer."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class FeedbackCategory(StrEnum):
    """Reason of an opinion. ``OTHER`` needs notes."""

    CORRECT = "correct"
    HELPFUL = "helpful"
    GOOD_TOOL_USE = "good_tool_use"
    INCORRECT = "incorrect"
    INCOMPLETE = "incomplete"
    TOOL_FAILURE = "tool_failure"
    REFUSED_VALID_REQUEST = "refused_valid_request"
    SLOW = "slow"
    UNSAFE = "unsafe"
    FORMATTING = "formatting"
    OTHER = "other"


POSITIVE_CATEGORIES = frozenset(
    {
        FeedbackCategory.CORRECT,
        FeedbackCategory.HELPFUL,
        FeedbackCategory.GOOD_TOOL_USE,
        FeedbackCategory.FORMATTING,
        FeedbackCategory.OTHER,
    }
)

NEGATIVE_CATEGORIES = frozenset(
    {
        FeedbackCategory.INCORRECT,
        FeedbackCategory.INCOMPLETE,
        FeedbackCategory.TOOL_FAILURE,
        FeedbackCategory.REFUSED_VALID_REQUEST,
        FeedbackCategory.FORMATTING,
        FeedbackCategory.SLOW,
        FeedbackCategory.UNSAFE,
        FeedbackCategory.OTHER,
    }
)


class Feedback(BaseModel):
    """Stored feedback on a message. Times are Unix seconds."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    thread_id: str
    message_id: str
    sentiment: FeedbackSentiment
    categories: list[FeedbackCategory] = []
    notes: str | None = None
    created_at: float | None = None
    changed_at: float | None = None


def category_is_valid_for_sentiment(category: FeedbackCategory, sentiment: FeedbackSentiment) -> bool:
    """Return True if the category may be chosen under the sentiment."""
    positive = sentiment is FeedbackSentiment.POSITIVE
    return category in (POSITIVE_CATEGORIES if positive else NEGATIVE_CATEGORIES)
