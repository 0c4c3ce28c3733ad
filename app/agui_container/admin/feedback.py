"""``python -m agui_container feedback``: what users say of messages, and what operators make of it.

Rule: what operators write is not for users' eyes, so it is written and read here only.
"""

import argparse
import time
from collections.abc import AsyncIterator

from msgspec.structs import replace

from agui_container.admin.store import SharedStores, print_json
from agui_container.ports.records import Review, ThreadKey, Triage
from agui_container.ports.store import FeedbackStore


async def list_feedback(where: SharedStores, asked: argparse.Namespace) -> str | None:
    """What was said, the newest first."""
    async for review in _reviews(where.store.feedbacks, None if asked.all else False):
        _show(review)
    return None


async def triage_feedback(where: SharedStores, asked: argparse.Namespace) -> str | None:
    """Change what is said of one feedback; what is not mentioned stays."""
    feedbacks, thread = where.store.feedbacks, ThreadKey(asked.owner, asked.thread)
    async for review in _reviews(feedbacks, None):
        if (review.thread, review.feedback.message_id) == (thread, asked.message):
            changed = await feedbacks.triage(thread, asked.message, apply_triage(asked, review.triage, time.time()))
            if changed is not None:
                _show(changed)
                return None
    return "there is no such feedback"


async def _reviews(feedbacks: FeedbackStore, resolved: bool | None) -> AsyncIterator[Review]:  # noqa: FBT001 - as in the store
    page = await feedbacks.reviews(resolved=resolved)
    while True:
        for review in page.items:
            yield review
        if page.next is None:
            return
        page = await feedbacks.reviews(resolved=resolved, page=page.next)


def apply_triage(asked: argparse.Namespace, triage: Triage, now: float) -> Triage:
    """A triage with what is asked; an empty text takes a label or a note away."""
    given = {name: value or None for name in ("label", "note") if (value := getattr(asked, name)) is not None}
    triage = replace(triage, **given)
    if asked.reopen:
        return replace(triage, resolved_by=None, resolved_at=None)
    return replace(triage, resolved_by=asked.resolved_by, resolved_at=now) if asked.resolved_by else triage


def _show(review: Review) -> None:
    said, triage = review.feedback, review.triage
    shown: dict[str, object] = {
        "owner": review.thread.owner,
        "threadId": review.thread.thread_id,
        "messageId": said.message_id,
        "sentiment": said.sentiment,
        "categories": list(said.categories),
        "notes": said.notes,
        "createdAt": said.created_at,
        "changedAt": said.changed_at,
        "label": triage.label,
        "note": triage.note,
        "resolvedBy": triage.resolved_by,
        "resolvedAt": triage.resolved_at,
    }
    print_json(shown)
