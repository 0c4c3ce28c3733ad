"""What an operator does beside the server, on the store that ``AGUI_STORE`` names: reads feedback and triages it.

Rule: no route and no command leads here, because what operators write is not for users' eyes. One JSON object per line
goes to the standard output, so that other programs can read on; what is wrong is one line and an exit status of 2.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from app.main import named
from app.ports.conversation import Review, Triage
from app.ports.records import ThreadKey
from app.ports.store import Feedbacks, Store, StoreUnavailable
from app.settings import Settings, SettingsError, load_settings
from app.stores import open_store


def operate(asked: argparse.Namespace) -> int:
    """Run one command of ``app.__main__``; the exit status."""
    try:
        done = asyncio.run(_with(database(load_settings()), asked))
    except SettingsError as error:
        return _failed(f"cannot do this: {error}")
    except StoreUnavailable:
        return _failed("cannot do this: the database of AGUI_STORE does not answer")
    return 0 if done else _failed("there is no such feedback")


def database(settings: Settings) -> Store:
    """The store that the servers share. Raises ``SettingsError`` where they do not."""
    url = settings.store.get_secret_value()
    if url == "memory":
        raise SettingsError("AGUI_STORE=memory is in the server's own process; name the database that it uses.")
    return named("AGUI_STORE", url, open_store)


def _failed(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201 - the one line an operator needs
    return 2


async def _with(store: Store, asked: argparse.Namespace) -> bool:
    try:
        await store.open()
        return await (_list if asked.action == "list" else _triage)(store.feedbacks, asked)
    finally:
        await store.aclose()


async def _list(feedbacks: Feedbacks, asked: argparse.Namespace) -> bool:
    """What was said, the newest first."""
    async for review in _reviews(feedbacks, None if asked.all else False):
        _show(review)
    return True


async def _triage(feedbacks: Feedbacks, asked: argparse.Namespace) -> bool:
    """Change what is said of one feedback; what is not mentioned stays. Gives whether there is such a feedback."""
    thread = ThreadKey(asked.owner, asked.thread)
    async for review in _reviews(feedbacks, None):
        if (review.thread, review.feedback.message_id) == (thread, asked.message):
            changed = await feedbacks.triage(thread, asked.message, triaged(review.triage, asked, time.time()))
            if changed is not None:
                _show(changed)
                return True
    return False


async def _reviews(feedbacks: Feedbacks, resolved: bool | None) -> AsyncIterator[Review]:  # noqa: FBT001 - as in the store
    page = await feedbacks.reviews(resolved=resolved)
    while True:
        for review in page.items:
            yield review
        if page.next is None:
            return
        page = await feedbacks.reviews(resolved=resolved, page=page.next)


def triaged(triage: Triage, asked: argparse.Namespace, now: float) -> Triage:
    """A triage with what is asked; an empty text takes a label or a note away."""
    given = {name: value or None for name in ("label", "note") if (value := getattr(asked, name)) is not None}
    triage = replace(triage, **given)
    if asked.reopen:
        return replace(triage, resolved_by=None, resolved_at=None)
    return replace(triage, resolved_by=asked.resolved_by, resolved_at=now) if asked.resolved_by else triage


def _show(review: Review) -> None:
    said, triage = review.feedback, review.triage
    shown = {
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
    print(json.dumps({name: value for name, value in shown.items() if value is not None}))  # noqa: T201 - the answer
