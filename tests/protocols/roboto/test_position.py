"""Tokens: the position of a client, and the missing messages. The tests' client applies deltas as Roboto's does."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from agui_container.ports.records import ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError
from agui_container.protocols.roboto.messages import text_block
from agui_container.protocols.roboto.records import MessageRecord, Notes
from agui_container.protocols.roboto.views import Position, SessionView

USE = {"content_type": "tool_use", "tool_use_id": "c1"}


def make_message(
    role: str, *blocks: object, name: str = "m", status: str = "completed", is_sent: bool = False
) -> MessageRecord:
    rows = [text_block(block) if isinstance(block, str) else dict(block) for block in blocks]  # type: ignore[call-overload]
    return MessageRecord(role, 0.0, rows, status, [name], is_sent)


def view(messages: Sequence[MessageRecord]) -> SessionView:
    thread = ThreadRecord(ThreadKey("o", "t"), ThreadStatus.USER_TURN, 0.0, 0.0)
    return SessionView(thread, Notes(), "user_turn", messages)


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


def test_only_the_text_that_was_not_sent_is_sent() -> None:
    position = at_end_of(make_message("user", "Hello"), make_message("assistant", "Hel", status="generating"))
    lacks = missing(
        [make_message("user", "Hello"), make_message("assistant", "Hello you", status="generating")],
        position,
        can_drop=True,
    )
    assert [(at, text_of(it), it.status) for at, it in lacks.messages.items()] == [(1, "lo you", "generating")]


def test_the_end_of_a_message_is_told_without_blocks_and_with_what_follows() -> None:
    position = at_end_of(make_message("assistant", "Done.", status="generating"))
    lacks = missing(
        [make_message("assistant", "Done."), make_message("roboto", USE, name="r")], position, can_drop=True
    )
    assert [(at, it.content, it.status) for at, it in lacks.messages.items()] == [
        (0, [], "completed"),
        (1, [USE], "completed"),
    ]


def test_blocks_behind_those_that_were_sent_are_sent_in_their_order() -> None:
    position = at_end_of(make_message("assistant", "One", USE, status="generating"))
    grown = make_message("assistant", "One", USE, "Two", USE, status="generating")
    assert text_of(missing([grown], position, can_drop=True).messages[0]) == "Two<>"


def test_the_words_that_a_client_sent_are_not_repeated_to_it() -> None:
    position = at_end_of(make_message("user", "Hello"))
    lacks = missing(
        [make_message("user", "Hello"), make_message("user", "Again", name="n", is_sent=True)], position, can_drop=False
    )
    assert [(at, it.content, it.status) for at, it in lacks.messages.items()] == [(1, [], "completed")]


def test_a_client_that_can_drop_its_own_words_gets_all_that_follows_anew() -> None:
    position = at_end_of(make_message("user", "Hello"))
    now = [make_message("user", "Hello"), make_message("user", "A", name="a"), make_message("user", "B", is_sent=True)]
    lacks = missing(now, position, can_drop=True)
    assert (lacks.reset_from, list(lacks.messages.values())) == (1, now[1:])


def test_a_history_that_was_emptied_is_sent_anew() -> None:
    lacks = missing([], at_end_of(make_message("user", "Hello")), can_drop=True)
    assert (lacks.messages, lacks.reset_from) == ({}, 0)


def test_nothing_is_missing_where_nothing_has_changed() -> None:
    messages = [make_message("user", "Hello"), make_message("assistant", "Hi", name="a", status="generating")]
    lacks = missing(messages, at_end_of(*messages), can_drop=True)
    assert (lacks.messages, lacks.reset_from) == ({}, None)


@pytest.mark.parametrize(
    "now",
    [
        [make_message("user", "Edited"), make_message("assistant", "Hi", name="a")],
        [make_message("user", "Hello", name="other"), make_message("assistant", "Hi", name="a")],
        [make_message("user", "Hello")],
    ],
)
def test_a_history_that_was_changed_elsewhere_is_sent_anew(now: list[MessageRecord]) -> None:
    lacks = missing(
        now, at_end_of(make_message("user", "Hello"), make_message("assistant", "Hi", name="a")), can_drop=True
    )
    assert lacks.reset_from == 0
    assert list(lacks.messages.values()) == now
