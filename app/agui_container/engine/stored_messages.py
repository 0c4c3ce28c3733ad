"""Messages of a stored thread, read page by page: its last ones, the turn that they decide, and those with a text.

Rule: a search stops at the first message that is sought, and other work gets a turn between two pages.
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import takewhile

from ag_ui.core import Message, ToolMessage
from pydantic_core import from_json

from agui_container.engine.views import parse_messages
from agui_container.ports.records import StoredMessage, ThreadKey, ThreadRecord, ThreadStatus, size_of_messages
from agui_container.ports.store import BadToken, Store
from agui_container.threads import offload_if_large
from agui_core.commands import MAX_PAGE
from agui_core.transcript import is_answered_by_server
from agui_core.turns import ends_calls, open_calls

TURN_PAGE = 10
"""Messages of one read. Most turns have fewer messages after the last one of the assistant or the user."""

ReadMessage = tuple[Message, str | None]
"""A message, and the id of the run that has added it. A message of the client has none."""


async def turn_after_message(
    store: Store, key: ThreadKey, message: StoredMessage, asked: Container[str | None]
) -> ThreadStatus:
    """Return the status of a thread that ends with this message. Only the call of a client tool waits for the client.

    The calls in ``asked`` wait for a person. A call with a later result is the client's unless a run has added the
    result. A call without one is the client's if the thread waits for the client, or has gone on without the result.
    """
    calls = {call.id for call in open_calls(await messages_since(store, key, ends_calls, message))}
    pending = [call_id for call_id in calls if call_id not in asked]
    if not pending:
        return ThreadStatus.USER_TURN
    newest_first = reversed(await _read_since(store, key, lambda each: each.id == message.id))
    after = list(takewhile(lambda read: read[0].id != message.id, newest_first))
    is_servers = {
        each.tool_call_id: run_id is not None or is_answered_by_server(each)
        for each, run_id in reversed(after)
        if isinstance(each, ToolMessage)
    }
    stored = await store.thread(key, messages=False)
    is_client_turn = stored is not None and stored.thread.status is ThreadStatus.CLIENT_TOOL_TURN
    is_unanswered_servers = not is_client_turn and not any(ends_calls(each) for each, _ in after)
    if all(is_servers.get(call_id, is_unanswered_servers) for call_id in pending):
        return ThreadStatus.USER_TURN
    return ThreadStatus.CLIENT_TOOL_TURN


async def messages_since(
    store: Store, key: ThreadKey, is_first: Callable[[Message], bool], last: StoredMessage | None = None
) -> Sequence[Message]:
    """Return the messages of a thread, at least from the last one on that is first, up to ``last`` or to the end."""
    return [message for message, _ in await _read_since(store, key, is_first, last)]


async def _read_since(
    store: Store, key: ThreadKey, is_first: Callable[[Message], bool], last: StoredMessage | None = None
) -> Sequence[ReadMessage]:
    stored = [] if last is None else [last]
    messages, before = parse_messages(stored), None if last is None else last.id
    while not any(map(is_first, messages)):
        try:
            page = await store.messages(key, limit=TURN_PAGE, before=before)
        except BadToken:  # the message was deleted meanwhile
            break
        if page is None:
            break
        parsed = await offload_if_large(size_of_messages(page.items), parse_messages, page.items)
        stored, messages, before = [*page.items, *stored], [*parsed, *messages], page.next
        if before is None:
            break
    return [(message, each.run_id) for message, each in zip(messages, stored, strict=True)]


SEARCHED_ROLES = ("user", "assistant")


async def threads_with(store: Store, records: Iterable[ThreadRecord], text: str) -> Sequence[ThreadRecord]:
    """Return the threads with a text in the title or a message of the user or the assistant, in any case."""
    sought = text.casefold()
    return [record for record in records if await _has(store, record, sought)]


async def _has(store: Store, record: ThreadRecord, sought: str) -> bool:
    if sought in (record.title or "").casefold():
        return True
    before: str | None = None
    while True:
        await asyncio.sleep(0)
        try:
            page = await store.messages(record.key, limit=MAX_PAGE, before=before)
        except BadToken:  # the message was deleted meanwhile
            return False
        if page is None or any(sought in _text_of(message) for message in page.items):
            return page is not None
        before = page.next
        if before is None:
            return False


def _text_of(message: StoredMessage) -> str:
    stored = from_json(message.data)
    if stored.get("role") not in SEARCHED_ROLES:
        return ""
    content = stored.get("content") or ""
    if isinstance(content, str):
        return content.casefold()
    return "\n".join(part.get("text", "") for part in content if part.get("type") == "text").casefold()
