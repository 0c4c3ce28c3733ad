"""Feedback on an answer of the agent (a feature of AGUI Container, ``docs/threads.md`` there)."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from agui_core.commands import FeedbackCategory, FeedbackSentiment


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
