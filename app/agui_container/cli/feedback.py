"""``agui feedback``: list feedback, and record its triage, which users never see.

Rule: the client is imported for a URL only, because operators use the database in images without the extra ``cli``.
"""

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from agui_container.cli.extra import needs_extra
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import config_option, token_option, url_option
from agui_container.cli.shared_stores import SharedStores, print_json, run_with_stores
from agui_container.ports.records import Review, ThreadKey, Triage
from agui_container.ports.store import FeedbackStore


class TriageChange(Struct, frozen=True):
    """Options of ``agui feedback triage``. None leaves a value unchanged, an empty text removes it."""

    label: str | None = None
    note: str | None = None
    resolved_by: str | None = None
    reopen: bool = False


@click.group()
def feedback() -> None:
    """List and triage feedback in the database of AGUI_STORE, or list that of a server's caller."""


@feedback.command("list")
@click.option("--all", "include_resolved", is_flag=True, help="Include resolved feedback.")
@url_option
@token_option
@config_option
def list_command(*, include_resolved: bool, url: str | None, token: str | None, config: Path | None) -> None:
    """List unresolved feedback as JSON lines, newest first.

    With --url, all feedback of the caller, thread by thread: users never see what is resolved.
    """
    if url is not None:
        with needs_extra("feedback --url"):
            from agui_container.cli.server_commands import print_feedback_of, run_with_server  # noqa: PLC0415 - see above
        run_with_server(url, token, print_feedback_of)
        return
    run_with_stores(config, partial(print_feedback, resolved=None if include_resolved else False))


@feedback.command("triage")
@click.argument("owner")
@click.argument("thread")
@click.argument("message")
@click.option("--label", help="One word for the subject. An empty one removes it.")
@click.option("--note", help="A note. An empty one removes it.")
@click.option("--resolved-by", metavar="NAME", help="Mark the feedback as resolved by this person.")
@click.option("--reopen", is_flag=True, help="Mark the feedback as unresolved.")
@config_option
def triage_command(
    owner: str,
    thread: str,
    message: str,
    label: str | None,
    note: str | None,
    resolved_by: str | None,
    *,
    reopen: bool,
    config: Path | None,
) -> None:
    """Record the triage of one feedback. Its OWNER, THREAD and MESSAGE are those of the list."""
    if resolved_by is not None and reopen:
        raise click.UsageError("--resolved-by and --reopen exclude each other")
    key, change = ThreadKey(owner, thread), TriageChange(label, note, resolved_by, reopen)
    run_with_stores(config, partial(triage_feedback, thread=key, message_id=message, change=change))


async def print_feedback(stores: SharedStores, *, resolved: bool | None) -> None:
    """Print feedback, newest first."""
    async for review in _reviews(stores.store.feedbacks, resolved=resolved):
        _show(review)


async def triage_feedback(stores: SharedStores, thread: ThreadKey, message_id: str, change: TriageChange) -> None:
    """Change the triage of one feedback. Raises ``CommandFailed`` if there is no such feedback."""
    feedbacks = stores.store.feedbacks
    async for review in _reviews(feedbacks, resolved=None):
        if (review.thread, review.feedback.message_id) == (thread, message_id):
            changed = await feedbacks.triage(thread, message_id, apply_change(change, review.triage, time.time()))
            if changed is not None:
                _show(changed)
                return
    raise CommandFailed("there is no such feedback")


async def _reviews(feedbacks: FeedbackStore, *, resolved: bool | None) -> AsyncIterator[Review]:
    page = await feedbacks.reviews(resolved=resolved)
    while True:
        for review in page.items:
            yield review
        if page.next is None:
            return
        page = await feedbacks.reviews(resolved=resolved, page=page.next)


def apply_change(change: TriageChange, triage: Triage, now: float) -> Triage:
    """Return a triage with a change applied."""
    texts = {name: text or None for name in ("label", "note") if (text := getattr(change, name)) is not None}
    triage = replace(triage, **texts)
    if change.reopen:
        return replace(triage, resolved_by=None, resolved_at=None)
    return replace(triage, resolved_by=change.resolved_by, resolved_at=now) if change.resolved_by else triage


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
