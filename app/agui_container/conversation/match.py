"""Recognition of a conversation that a client sends again under new message ids.

Rule: an assistant message among the sent messages proves that the client sends history. If no sent id is stored, and
the sent messages up to and including the first assistant message equal the stored ones by role and content, the sent
messages are the whole conversation. A stored message stays, with its id, as long as the content matches. From the first
difference on, the sent messages replace the stored ones.

There are two groups of messages. *Statements* are messages of the user and of the assistant. They are compared one by
one, in order. *Companions* follow a statement: results of calls, reasoning, activities, instructions, and all messages
of subagents. Clients commonly drop companions, so a stored companion stays with its statement although it was not sent.
docs/threads.md describes this for users.
"""

from collections import defaultdict, deque
from collections.abc import Container, Hashable, Sequence

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    AudioPart,
    DocumentPart,
    ImagePart,
    Message,
    TextPart,
    ToolMessage,
    UserMessage,
    VideoPart,
)
from msgspec import Struct
from pydantic_core import from_json

from agui_container.conversation.stored_parts import NO_AUTHORS, ResultAuthors, server_results
from agui_core.json_patch import Json
from agui_core.turns import calls_of

ContentPart = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart


class Stored(Struct, eq=False):
    """A stored message, or the sent one that replaces it."""

    message: Message
    is_sent: bool = False


def match_conversation(
    stored: Sequence[Message], sent: Sequence[Message], authors: ResultAuthors = NO_AUTHORS
) -> list[Message] | None:
    """Return the sent messages with stored ones in place of copies, or None if they are not the whole conversation."""
    final = {result.id for result in server_results(stored, authors).values()}
    whole = _match(stored, sent, final)
    if whole is not None:
        return whole
    # The page may have made its greeting anew.
    greeting, remaining = split_greeting(sent)
    matched = _match(split_greeting(stored)[1], remaining, final) if greeting else None
    return None if matched is None else [*greeting, *matched]


def _match(stored: Sequence[Message], sent: Sequence[Message], final: Container[str]) -> list[Message] | None:
    matcher = Matcher(stored, compares_calls=any(calls_of(message) for message in sent), final=final)
    for message in sent:
        matcher.add(message)
    return matcher.conversation() if matcher.is_proven else None


def split_greeting(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    roles = (message.role if message.subagent_run_id is None else "" for message in messages)
    start = next((position for position, role in enumerate(roles) if role == "user"), len(messages))
    return messages[:start], messages[start:]


class Matcher:
    """Comparison of the sent messages with the stored ones, in one pass."""

    def __init__(self, stored: Sequence[Message], *, compares_calls: bool, final: Container[str] = ()) -> None:
        self.is_proven = False
        """True if an assistant message has matched."""
        self._compares_calls = compares_calls
        self._final = final
        self._done: list[Message] = []
        self._group: list[Stored] = []
        """The last statement that has matched, if there is one, and its companions."""
        self._following = deque(stored)
        """The stored messages from the next statement on."""
        self._tail: list[Message] = []
        """The sent messages from the first difference on."""
        self._calls: set[str] = set()
        """Ids of the stored calls before the next statement."""
        self._call_ids: dict[str, str] = {}
        """Ids of stored calls by the ids of their sent copies."""
        self._is_edited = False
        """True if a result was replaced. No later statement may match then."""
        self._take_companions()

    def add(self, sent: Message) -> None:
        sent = self._with_stored_call_id(sent)
        is_statement, key = self._is_statement(sent), self._key(sent)
        if self._tail:
            self._append(sent)
        elif is_statement and key == self._next_key and not self._is_edited:
            self._done += [each.message for each in self._group]
            self._group = [Stored(self._following.popleft(), is_sent=True)]
            self._take_companions()
            self._record_match(self._group[0].message, sent)
        elif (original := self._find_unsent(key)) is not None:
            # A subagent's message may come back as the assistant's own: a client may not know ``subagentRunId``.
            original.is_sent = True
            self._record_match(original.message, sent)
        elif is_statement:
            self._append(sent)
        else:
            self._add_companion(sent)

    def conversation(self) -> list[Message]:
        """Return all messages in order.

        Kept statements that did not match are dropped. The companions of a dropped statement that precede it, such as
        its reasoning, are dropped too. These are all companions after the results of the last matching statement.
        """
        group = self._group
        if self._following:
            statements = [each.message for each in group[:1] if self._is_statement(each.message)]
            own = {call.id for statement in statements for call in calls_of(statement)}
            is_own = [isinstance(it.message, ToolMessage) and it.message.tool_call_id in own for it in group]
            end = max((at for at, each in enumerate(is_own, 1) if each), default=0)
            group = [each for at, each in enumerate(group) if at < end or each.is_sent]
        return [*self._done, *(each.message for each in group), *self._tail]

    # --- the stored messages ---

    def _is_statement(self, message: Message) -> bool:
        if message.subagent_run_id is not None:
            return False
        if isinstance(message, AssistantMessage):
            return bool(message.content) or (self._compares_calls and bool(message.tool_calls))
        return isinstance(message, UserMessage)

    def _take_companions(self) -> None:
        self._calls |= {call.id for each in self._group for call in calls_of(each.message)}
        self._unsent: defaultdict[Hashable, deque[Stored]] = defaultdict(deque)
        while self._following and not self._is_statement(self._following[0]):
            companion = Stored(self._following.popleft())
            self._group.append(companion)
            self._calls |= {call.id for call in calls_of(companion.message)}
            self._unsent[self._key(companion.message)].append(companion)
            self._unsent[kind_of(companion.message)].append(companion)
        self._next_key = self._key(self._following[0]) if self._following else None

    def _find_unsent(self, key: Hashable) -> Stored | None:
        companions = self._unsent[key]
        while companions and companions[0].is_sent:
            companions.popleft()
        return companions[0] if companions else None

    # --- the sent messages ---

    def _record_match(self, stored: Message, sent: Message) -> None:
        """Record a matching message: the proof that history is sent, and the ids of equal calls."""
        self.is_proven = self.is_proven or (isinstance(sent, AssistantMessage) and sent.subagent_run_id is None)
        for stored_call, sent_call in zip(calls_of(stored), calls_of(sent), strict=False):
            self._call_ids[sent_call.id] = stored_call.id

    def _add_companion(self, sent: Message) -> None:
        replaced = self._find_unsent(kind_of(sent)) if is_replaceable(sent) else None
        if replaced is None:
            self._group.append(Stored(sent, is_sent=True))
            return
        replaced.is_sent = True
        if replaced.message.id not in self._final:
            replaced.message = sent
            self._is_edited = self._is_edited or isinstance(sent, ToolMessage)

    def _append(self, sent: Message) -> None:
        """Append a message after the first difference. Results that follow may belong to its own calls."""
        for call in calls_of(sent):
            self._call_ids.pop(call.id, None)
        self._tail.append(sent)

    def _with_stored_call_id(self, sent: Message) -> Message:
        if not isinstance(sent, ToolMessage):
            return sent
        call_id = self._call_ids.get(sent.tool_call_id, sent.tool_call_id)
        return sent if call_id == sent.tool_call_id else sent.model_copy(update={"tool_call_id": call_id})

    def _key(self, message: Message) -> Hashable:
        """The key of a result has the id of the call only if that call precedes it in the stored messages."""
        calls = calls_of(message) if self._compares_calls else ()
        return (
            message.role,
            message.tool_call_id if isinstance(message, ToolMessage) and message.tool_call_id in self._calls else None,
            content_key(message),
            tuple((call.function.name, arguments_key(call.function.arguments)) for call in calls),
        )


def kind_of(message: Message) -> Hashable:
    """Return a key that is equal for two companions if one can replace the other."""
    if isinstance(message, ToolMessage):
        return message.role, message.tool_call_id
    return message.role, message.subagent_run_id


def is_replaceable(sent: Message) -> bool:
    """Return True if a companion may replace a stored one. The assistant's own companions are empty and may not."""
    return not isinstance(sent, AssistantMessage) or sent.subagent_run_id is not None


def content_key(message: Message) -> Hashable:
    """Return a key of the content. Text equals a list of one text part, and None equals the empty string."""
    if isinstance(message, ActivityMessage):
        return message.activity_type, json_key(message.content)
    if isinstance(message.content, str | None):
        return (message.content,) if message.content else ()
    return tuple(key for part in message.content if (key := part_key(part)) != "")


def part_key(part: ContentPart) -> Hashable:
    """Return a key of a content part that ignores its metadata. The key of a text part is its text."""
    return part.text if isinstance(part, TextPart) else (part.type, part.source.model_dump_json())


def arguments_key(arguments: str) -> Hashable:
    """Return a key of a call's arguments. An empty string equals an empty object. Invalid JSON is compared as text."""
    try:
        return json_key(from_json(arguments or "{}", allow_inf_nan=False))
    except ValueError:
        return arguments


def json_key(value: Json) -> Hashable:
    """Return a key of a JSON value. 1 equals 1.0 but not true, and the order of fields is ignored."""
    if isinstance(value, dict):
        return frozenset((name, json_key(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(map(json_key, value))
    return (value,) if isinstance(value, bool) else value
