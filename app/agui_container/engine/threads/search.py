"""Search for a text in the titles and messages of threads.

Rule: messages are read page by page, and other work gets a turn between two pages, so a search delays nobody.
"""

import asyncio
from collections.abc import Iterable, Sequence

from pydantic_core import from_json

from agui_container.ports.records import StoredMessage, ThreadRecord
from agui_container.ports.store import BadToken, ThreadStore
from agui_container.protocol.commands import MAX_PAGE

SEARCHED_ROLES = ("user", "assistant")


async def threads_with(threads: ThreadStore, records: Iterable[ThreadRecord], text: str) -> Sequence[ThreadRecord]:
    """Return the records of the threads that have a text in their title or in a message of the user or the assistant.

    Upper and lower case are equal.
    """
    sought = text.casefold()
    return [record for record in records if await _has(threads, record, sought)]


async def _has(threads: ThreadStore, record: ThreadRecord, sought: str) -> bool:
    if sought in (record.title or "").casefold():
        return True
    before: str | None = None
    while True:
        await asyncio.sleep(0)
        try:
            page = await threads.messages(record.key, limit=MAX_PAGE, before=before)
        except BadToken:  # the message was deleted meanwhile
            return False
        if page is None or any(sought in _text_of(message) for message in page.items):
            return page is not None
        before = page.next
        if before is None:
            return False


def _text_of(message: StoredMessage) -> str:
    """Return the text of a message without regard to case; an empty text if it is not searched."""
    stored = from_json(message.data)
    if stored.get("role") not in SEARCHED_ROLES:
        return ""
    content = stored.get("content") or ""
    if isinstance(content, str):
        return content.casefold()
    return "\n".join(part.get("text", "") for part in content if part.get("type") == "text").casefold()
