"""``python -m agui_container feedback``: list the feedback of users and triage it.

Rule: users must not see the triage, so only these commands read and write it.
"""

import argparse
import time
from collections.abc import AsyncIterator

from msgspec.structs import replace

from agui_container.admin.store import SharedStores, print_json
from agui_container.ports.records import Review, ThreadKey, Triage
from agui_container.ports.store import FeedbackStore


async def list_feedback(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Print unresolved feedback, newest first. With ``--all``, print resolved feedback, too."""
    async for review in _reviews(stores.store.feedbacks, None if arguments.all else False):
        _show(review)
    return None


async def triage_feedback(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Change the triage of one feedback. Options that are not given leave their value unchanged."""
    feedbacks, thread = stores.store.feedbacks, ThreadKey(arguments.owner, arguments.thread)
    async for review in _reviews(feedbacks, None):
        if (review.thread, review.feedback.message_id) == (thread, arguments.message):
            changed = await feedbacks.triage(
                thread, arguments.message, apply_triage(arguments, review.triage, time.time())
            )
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


def apply_triage(arguments: argparse.Namespace, triage: Triage, now: float) -> Triage:
    """Return a triage with the given options applied. An empty label or note removes the old one."""
    texts = {name: value or None for name in ("label", "note") if (value := getattr(arguments, name)) is not None}
    triage = replace(triage, **texts)
    if arguments.reopen:
        return replace(triage, resolved_by=None, resolved_at=None)
    return replace(triage, resolved_by=arguments.resolved_by, resolved_at=now) if arguments.resolved_by else triage


def _show(review: Review) -> None:
    feedback, triage = review.feedback, review.triage
    facts: dict[str, object] = {
        "owner": review.thread.owner,
        "threadId": review.thread.thread_id,
        "messageId": feedback.message_id,
        "sentiment": feedback.sentiment,
        "categories": list(feedback.categories),
        "notes": feedback.notes,
        "createdAt": feedback.created_at,
        "changedAt": feedback.changed_at,
        "label": triage.label,
        "note": triage.note,
        "resolvedBy": triage.resolved_by,
        "resolvedAt": triage.resolved_at,
    }
    print_json(facts)
