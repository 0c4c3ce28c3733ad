"""Last messages of a thread, read without the rest of it, and the turn that they decide.

Rule: the calls of a turn are those of the assistant's last message, unless a user message follows
(``unanswered_calls``). So a search from the end stops at the first message of either kind.
"""

from collections.abc import Callable, Sequence

from ag_ui.core import AssistantMessage, Message, ToolMessage, UserMessage

from agui_container.engine.threads.views import parse_messages
from agui_container.ports.records import StoredMessage, ThreadKey, ThreadStatus, size_of_messages
from agui_container.ports.store import BadToken, ThreadStore
from agui_container.protocol.conversation.merge import unanswered_calls
from agui_container.protocol.conversation.transcript import is_answered_by_server
from agui_container.runtime.offload import offload_if_large

TURN_PAGE = 10
"""Messages of one read. Most turns have fewer messages after the last one of the assistant or the user."""


async def turn_after_message(threads: ThreadStore, key: ThreadKey, message: StoredMessage) -> ThreadStatus:
    """Return the status of a thread that ends with this message.

    A call without a result up to the message is the client's to answer, unless its later result says that the server
    ran it. If the call has no result in the whole thread either, it is the client's only if the thread waits for the
    client. Otherwise the call waits for an approval or is abandoned.
    """
    calls = set(unanswered_calls(await messages_since(threads, key, _decides_open_calls, message)))
    if calls:
        calls -= await _server_answers_after(threads, key, message.id)
    if not calls:
        return ThreadStatus.USER_TURN
    record = await threads.get(key)
    still_open = not calls.isdisjoint(unanswered_calls(await messages_since(threads, key, _decides_open_calls)))
    if still_open and (record is None or record.status is not ThreadStatus.CLIENT_TOOL_TURN):
        return ThreadStatus.USER_TURN
    return ThreadStatus.CLIENT_TOOL_TURN


async def messages_since(
    threads: ThreadStore, key: ThreadKey, is_first: Callable[[Message], bool], last: StoredMessage | None = None
) -> Sequence[Message]:
    """Return the messages of a thread, at least from the last one on that is first, up to ``last`` or to the end."""
    messages = parse_messages([] if last is None else [last])
    before = None if last is None else last.id
    while not any(map(is_first, messages)):
        page, before = await _read_before(threads, key, before)
        messages = [*page, *messages]
        if before is None:
            break
    return messages


def _decides_open_calls(message: Message) -> bool:
    """True if no message before this one matters to ``unanswered_calls``."""
    return isinstance(message, UserMessage) or (isinstance(message, AssistantMessage) and not message.subagent_run_id)


async def _server_answers_after(threads: ThreadStore, key: ThreadKey, message_id: str) -> set[str]:
    """Return the calls that the server has answered after a message."""
    found, before, is_after = set[str](), None, True
    while is_after:
        page, before = await _read_before(threads, key, before)
        ids = [message.id for message in page]
        is_after = before is not None and message_id not in ids
        after = page[ids.index(message_id) + 1 :] if message_id in ids else page
        found |= {it.tool_call_id for it in after if isinstance(it, ToolMessage) and is_answered_by_server(it)}
    return found


async def _read_before(
    threads: ThreadStore, key: ThreadKey, before: str | None
) -> tuple[Sequence[Message], str | None]:
    """Return the messages before one, and the id to read on with. There are none if that message was removed."""
    try:
        page = await threads.messages(key, limit=TURN_PAGE, before=before)
    except BadToken:
        return [], None
    if page is None:
        return [], None
    return await offload_if_large(key.owner, size_of_messages(page.items), parse_messages, page.items), page.next
