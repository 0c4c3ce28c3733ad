"""What users say of messages, in memory."""

from collections.abc import Sequence

from msgspec.structs import replace

from app.ports.conversation import Feedback, Review, Triage
from app.ports.records import Page, ThreadKey
from app.ports.store import PAGE
from app.stores.memory.contents import Contents
from app.stores.pages import number_in, page_of


class MemoryFeedbacks:
    """``Feedbacks`` in memory."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    async def give(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store a feedback in place of the one on the same message."""
        found = self._contents.threads.get(thread)
        if found is None or feedback.message_id not in found.messages:
            return None
        number, review = found.reviews.get(
            feedback.message_id, (self._contents.next_number(), Review(thread, feedback, Triage()))
        )
        said = replace(feedback, categories=tuple(feedback.categories), created_at=review.feedback.created_at)
        found.reviews[feedback.message_id] = (number, replace(review, feedback=said))
        return said

    async def of(self, thread: ThreadKey) -> Sequence[Feedback]:
        """What was said of a thread's messages, the oldest first."""
        found = self._contents.threads.get(thread)
        return [review.feedback for _, review in found.reviews.values()] if found else []

    async def reviews(self, *, resolved: bool | None = None, page: str | None = None) -> Page[Review]:
        """What everybody said, the newest first."""
        below = None if page is None else number_in(page)
        wanted = [
            (number, review)
            for thread in self._contents.threads.values()
            for number, review in thread.reviews.values()
            if resolved in (None, review.triage.resolved_at is not None) and (below is None or number < below)
        ]
        newest = sorted(wanted, key=lambda it: it[0], reverse=True)
        shown, rest = page_of(newest, PAGE, lambda it: str(it[0]))
        return Page([review for _, review in shown], rest)

    async def triage(self, thread: ThreadKey, message_id: str, triage: Triage) -> Review | None:
        """Put this in place of a feedback's triage."""
        found = self._contents.threads.get(thread)
        if found is None or message_id not in found.reviews:
            return None
        number, review = found.reviews[message_id]
        found.reviews[message_id] = (number, replace(review, triage=triage))
        return found.reviews[message_id][1]
