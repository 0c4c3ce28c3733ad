"""Merge of a thread's stored messages and a client's, and the title that is made of them.

In the tables a word is a message: its id is the word in small letters, its text the word itself. So ``B`` is ``b``,
edited.
"""

import json
from collections.abc import Callable, Mapping, Sequence

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from agui_container.conversation.merge import MAX_TITLE, MergedHistory, make_title, merge_history
from agui_container.conversation.message_json import dump_message
from agui_container.protocol.parser import MESSAGE

IMAGE = ImagePart(source=UrlSource(value="https://example.com/a.png", mime_type="image/png"))


def message(word: str) -> Message:
    return UserMessage(id=word.lower(), content=word)


def kept_of(words: Sequence[str]) -> dict[str, bytes]:
    return {word.lower(): dump_message(message(word)) for word in words}


def texts(messages: Sequence[Message]) -> str:
    return " ".join(str(each.content) for each in messages)


@pytest.mark.parametrize(
    ("kept", "sent", "together", "changed", "order"),
    [
        pytest.param("", "", "", "", None, id="nothing at all"),
        pytest.param("", "a b", "a b", "a b", None, id="a new thread"),
        pytest.param("a b", "", "a b", "", None, id="nothing is sent"),
        pytest.param("a b", "c", "a b c", "c", None, id="only what is new"),
        pytest.param("a b", "c d", "a b c d", "c d", None, id="only what is new, twice"),
        pytest.param("a b c", "c d", "a b c d", "d", None, id="the end and what is new"),
        pytest.param("a b c", "c b", "a b c", "", None, id="the end turned round"),
        pytest.param("a b c", "B", "a B c", "B", None, id="an edit alone"),
        pytest.param("a b c", "B d", "a B c d", "B d", None, id="an edit and what is new"),
        pytest.param("a", "b B", "a B", "B", None, id="a new id twice"),
        pytest.param("a b", "a b", "a b", "", None, id="everything"),
        pytest.param("a b", "a b c", "a b c", "c", None, id="everything and what is new"),
        pytest.param("a b c", "a B c", "a B c", "B", None, id="everything with an edit"),
        pytest.param("a b", "A b", "A b", "A", None, id="everything with the first edited"),
        pytest.param("a b c", "a", "a", "", "a", id="cut off"),
        pytest.param("a b c", "a d", "a d", "d", "a d", id="cut off and gone on"),
        pytest.param("a b c", "A", "A", "A", "a", id="the first asked again"),
        pytest.param("a b c", "a c", "a c", "", "a c", id="the middle left out"),
        pytest.param("a b c", "a c b", "a c b", "", "a c b", id="everything in another order"),
        pytest.param("a b", "z a b", "z a b", "z", "z a b", id="something before the first"),
        pytest.param("a b", "a z b", "a z b", "z", "a z b", id="something in between"),
        pytest.param("a", "a b B", "a b B", "B", None, id="everything with an id twice"),
    ],
)
def test_stored_and_sent_messages_are_merged_into_one_conversation(
    kept: str, sent: str, together: str, changed: str, order: str | None
) -> None:
    found = merge_history(kept_of(kept.split()), [message(word) for word in sent.split()])
    assert texts(found.messages) == together
    assert found.changed == kept_of(changed.split())
    assert list(found.changed) == changed.lower().split()
    assert (None if found.order is None else " ".join(found.order)) == order


SAME = {
    "a field that is null": ({"id": "a", "role": "user", "content": "x"}, {"name": None}),
    "a field of the client's own": ({"id": "a", "role": "user", "content": "x", "own": {"n": [1.5, None]}}, {}),
    "a call": (
        {
            "id": "a",
            "role": "assistant",
            "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"content": None},
    ),
    "parts": ({"id": "a", "role": "user", "content": [{"type": "text", "text": "\u2028 é"}]}, {}),
    "a result": ({"id": "a", "role": "tool", "toolCallId": "c", "content": "42"}, {"error": None}),
}


@pytest.mark.parametrize(("said", "more"), SAME.values(), ids=SAME)
def test_a_message_that_says_the_same_has_not_changed(said: dict[str, object], more: dict[str, object]) -> None:
    kept = {"a": dump_message(MESSAGE.validate_json(json.dumps(said)))}
    again = MESSAGE.validate_python(dict(reversed([*said.items(), *more.items()])))
    assert merge_history(kept, [again]) == MergedHistory([again], {}, None)


WORDS = st.sampled_from("aAbBcCdDeE")


def as_stored(kept: Mapping[str, bytes], together: MergedHistory) -> dict[str, bytes]:
    """Apply a merge as a store does: new messages at the end, then the order, without messages that it leaves out."""
    stored = {**kept, **together.changed}
    return stored if together.order is None else {key: stored[key] for key in together.order}


@given(st.lists(WORDS, unique_by=str.lower), st.lists(WORDS))
def test_the_agent_and_the_store_have_the_same_conversation_for_any_input(kept: list[str], sent: list[str]) -> None:
    before, said = kept_of(kept), kept_of(sent)
    is_begun_anew = bool(before.keys() & said.keys()) and sent[0].lower() not in before
    assume(not is_begun_anew)  # the next test is about that
    together = merge_history(before, [message(word) for word in sent])
    after = as_stored(before, together)
    assert list(after) == list(dict.fromkeys(each.id for each in together.messages))
    assert after == {each.id: dump_message(each) for each in together.messages}
    assert said.items() <= after.items()
    assert all(before.get(key) != data for key, data in together.changed.items())
    if kept and kept[0].lower() in said:
        assert list(after) == list(said)
    else:
        assert list(after)[: len(before)] == list(before)
        assert {key: data for key, data in after.items() if key not in said}.items() <= before.items()
    again = merge_history(after, [message(word) for word in sent])
    assert (again.changed, again.order) == ({}, None)


MADE: Mapping[str, Callable[[str], Message]] = {
    "u": lambda word: UserMessage(id=word, content="x"),
    "a": lambda word: AssistantMessage(id=word, content="x"),
    "r": lambda word: ToolMessage(id=word, tool_call_id="c", content="x"),
    "t": lambda word: ReasoningMessage(id=word, content="x"),
    "v": lambda word: ActivityMessage(id=word, activity_type="app", content={}),
}


@pytest.mark.parametrize(
    ("kept", "sent", "together"),
    [
        pytest.param("u1 a1 r1 v1 a2", "u1 a7 r8 a9 u2", "u1 a7 r8 v1 a9 u2", id="new ids"),
        pytest.param("u1 a1 r1 v1 a2", "u1 a1 a2 u2", "u1 a1 v1 a2 u2", id="no results"),
        pytest.param("u1 a1 r1 v1 a2", "u1 a7 a8 u2", "u1 a7 v1 a8 u2", id="new ids, no results"),
        pytest.param("u1 t1 a1 v1 a2 v2", "u1 a7 a8", "u1 a7 v1 a8 v2", id="new ids, no reasoning"),
        pytest.param("u1 a1 v1 a2 u2 a3 v2", "u1 a7 a8 u9", "u1 a7 v1 a8 u9", id="new ids and an edit"),
        pytest.param("v1 u1 a1 v2", "u1 a7", "v1 u1 a7 v2", id="one at the beginning"),
        pytest.param("u1 a1 r1 v1 a2", "u1", "u1", id="an answer that is wanted anew"),
        pytest.param("u1 a1 u2 v1 a2 v2", "u1 a7 u9", "u1 a7 u9", id="a question in other words"),
    ],
)
def test_activities_stay_in_their_places(kept: str, sent: str, together: str) -> None:
    stored, said = ([MADE[word[0]](word) for word in words.split()] for words in (kept, sent))
    found = merge_history({each.id: dump_message(each) for each in stored}, said)
    assert " ".join(each.id for each in found.messages) == together


U, A = UserMessage, AssistantMessage


@pytest.mark.parametrize(
    ("content", "title"),
    [
        pytest.param("calculate 6*7", "calculate 6*7", id="text"),
        pytest.param("  Good \n\t morning ", "Good morning", id="white space"),
        pytest.param(" \n ", None, id="nothing but white space"),
        pytest.param("", None, id="nothing"),
        pytest.param("x" * MAX_TITLE, "x" * MAX_TITLE, id="just short enough"),
        pytest.param("x" * (MAX_TITLE + 1), "x" * (MAX_TITLE - 1) + "…", id="too long"),
        pytest.param("y" * (MAX_TITLE - 2) + " and so on", "y" * (MAX_TITLE - 2) + "…", id="cut at a space"),
        pytest.param([TextPart(text="see"), IMAGE, TextPart(text="this ")], "see this", id="text around an image"),
        pytest.param([IMAGE], None, id="only an image"),
    ],
)
def test_a_title_is_how_the_first_user_began(content: str | list[TextPart | ImagePart], title: str | None) -> None:
    first: list[Message] = [SystemMessage(id="s", content="Be short."), AssistantMessage(id="a", content="Hello.")]
    said = [*first, UserMessage(id="u", content=content), UserMessage(id="v", content="and then")]
    assert make_title(said) == title


def test_a_conversation_without_a_user_message_has_no_title() -> None:
    assert make_title([AssistantMessage(id="a", content="Hello.")]) is None
    assert make_title([]) is None
