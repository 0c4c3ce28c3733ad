"""Tokens: the position of a client, and the missing messages. The tests' client applies deltas as Roboto's does."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from agui_container.ports.records import ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError
from agui_container.protocols.roboto.messages import MessageRecord, text_block
from agui_container.protocols.roboto.requests import Facts
from agui_container.protocols.roboto.views import Position, SessionView


def make_message(
    role: str, *blocks: object, name: str = "m", status: str = "completed", is_sent: bool = False
) -> MessageRecord:
    rows = [text_block(block) if isinstance(block, str) else dict(block) for block in blocks]  # type: ignore[call-overload]
    return MessageRecord(role, 0.0, rows, status, [name], is_sent)


def view(messages: Sequence[MessageRecord]) -> SessionView:
    thread = ThreadRecord(ThreadKey("o", "t"), ThreadStatus.USER_TURN, 0.0, 0.0)
    return SessionView(thread, Facts(), "user_turn", messages)


def at_end_of(*messages: MessageRecord) -> Position:
    return Position.parse(view(messages).position.token)


class Lack(NamedTuple):
    messages: Mapping[int, MessageRecord]
    reset_from: int | None


def missing(messages: Sequence[MessageRecord], position: Position, *, can_drop: bool) -> Lack:
    here = view(messages)
    has_changed = here.position.facts != position.facts
    return Lack(*here.missing(position, has_changed=has_changed, can_drop=can_drop))


def text_of(message: MessageRecord) -> str:
    return "".join(str(block.get("text", "<>")) for block in message.content)


def test_a_token_comes_back_as_it_was() -> None:
    position = Position(3, 17, 2, prefix="0a" * 6, facts="1b" * 6)
    assert Position.parse(position.token) == position


@pytest.mark.parametrize("token", ["x", "1.2.3", "", "1.0.0.aaaaaaaaaaaa.xxxxxxxxxxxx"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(AppError, match="next_token"):
        Position.parse(token)


def test_a_client_without_a_token_lacks_everything_also_its_own_words() -> None:
    lacks = missing([make_message("user", "Hello", is_sent=True)], Position(), can_drop=True)
    assert text_of(lacks.messages[0]) == "Hello"


def test_the_words_that_a_client_sent_are_not_repeated_to_it() -> None:
    position = at_end_of(make_message("user", "Hello"))
    lacks = missing(
        [make_message("user", "Hello"), make_message("user", "Again", name="n", is_sent=True)], position, can_drop=False
    )
    assert [(at, it.content, it.status) for at, it in lacks.messages.items()] == [(1, [], "completed")]


def test_a_history_that_was_emptied_is_sent_anew() -> None:
    lacks = missing([], at_end_of(make_message("user", "Hello")), can_drop=True)
    assert (lacks.messages, lacks.reset_from) == ({}, 0)
