"""Merge of a thread's stored messages and a client's, and the title that is made of them.

In the tables a word is a message: its id is the word in small letters, its text the word itself. So ``B`` is ``b``,
edited.
"""

import json
from collections.abc import Mapping, Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from agui_container.protocol.conversation.merge import (
    MAX_TITLE,
    MESSAGE,
    MergedHistory,
    dump_message,
    make_title,
    merge_history,
    unanswered_calls,
)
from tests.requirements import requirement

IMAGE = ImagePart(source=UrlSource(value="https://example.com/a.png", mime_type="image/png"))


def message(word: str) -> Message:
    return UserMessage(id=word.lower(), content=word)


def kept_of(words: Sequence[str]) -> dict[str, bytes]:
    """Return a thread in the form of a store."""
    return {word.lower(): dump_message(message(word)) for word in words}


def texts(messages: Sequence[Message]) -> str:
    return " ".join(str(each.content) for each in messages)


@requirement("thread.merge")
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


@requirement("thread.merge")
@pytest.mark.parametrize(("said", "more"), SAME.values(), ids=SAME)
def test_a_message_that_says_the_same_has_not_changed(said: dict[str, object], more: dict[str, object]) -> None:
    kept = {"a": dump_message(MESSAGE.validate_json(json.dumps(said)))}
    again = MESSAGE.validate_python(dict(reversed([*said.items(), *more.items()])))
    assert merge_history(kept, [again]) == MergedHistory([again], {}, None)


def test_a_message_of_another_role_is_another_message() -> None:
    kept = kept_of(["x", "a"])
    found = merge_history(kept, [SystemMessage(id="a", content="a")])
    assert [each.role for each in found.messages] == ["user", "system"]
    assert list(found.changed) == ["a"]


def test_stored_messages_come_back_unchanged() -> None:
    call = ToolCall(id="c", function=FunctionCall(name="f", arguments="{}"))
    said: list[Message] = [
        UserMessage(id="u", content=[TextPart(text="see"), IMAGE]),
        AssistantMessage(id="m", content="", tool_calls=[call], subagent_run_id="s"),
        ToolMessage(id="t", tool_call_id="c", content=[TextPart(text="done")]),
    ]
    found = merge_history({each.id: dump_message(each) for each in said}, [message("new")])
    assert list(found.messages) == [*said, message("new")]


def test_a_stored_value_that_is_not_a_message_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        merge_history({"a": b"no message"}, [message("b")])


WORDS = st.sampled_from("aAbBcCdDeE")


def as_stored(kept: Mapping[str, bytes], together: MergedHistory) -> dict[str, bytes]:
    """Apply a merge as a store does: new messages at the end, then the order, without messages that it leaves out."""
    stored = {**kept, **together.changed}
    return stored if together.order is None else {key: stored[key] for key in together.order}


@requirement("thread.merge")
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


U, A = UserMessage, AssistantMessage
THREAD: Sequence[Message] = [U(id="u1", content="1"), A(id="a1", content="one"), U(id="u2", content="2")]


@requirement("thread.merge")
@pytest.mark.parametrize(
    ("former", "new"),
    [
        ([SystemMessage(id="old", content="It is 1.")], [SystemMessage(id="new", content="It is 2.")]),
        ([U(id="old", content="It is 1.")], [U(id="new", content="It is 2.")]),
        (
            [SystemMessage(id="old", content="Hm."), A(id="greeting", content="Hello.")],
            [SystemMessage(id="new", content="It is 2."), A(id="fresh", content="Hello.")],
        ),
    ],
    ids=["instructions", "text of the page", "instructions and a greeting"],
)
@pytest.mark.parametrize("at", [0, 1, 2], ids=["everything", "without the question", "without the first exchange"])
def test_a_beginning_made_anew_replaces_the_former_one(
    former: Sequence[Message], new: Sequence[Message], at: int
) -> None:
    kept = {each.id: dump_message(each) for each in [*former, *THREAD]}
    sent = [*new, *THREAD[at:], message("c")]
    found = merge_history(kept, sent)
    assert texts(found.messages) == texts([*new, *THREAD, message("c")])
    assert list(found.changed) == ["old", "c"]
    assert merge_history(as_stored(kept, found), sent).changed == {}


@requirement("thread.merge")
def test_a_beginning_that_appears_later_stands_in_front_and_is_replaced_from_then_on() -> None:
    kept = {each.id: dump_message(each) for each in THREAD}
    for number in range(3):
        found = merge_history(kept, [U(id=f"s{number}", content=f"It is {number}."), *THREAD[1:]])
        assert texts(found.messages) == f"It is {number}. 1 one 2"
        kept = as_stored(kept, found)


def test_results_before_a_stored_message_are_no_beginning() -> None:
    kept = {each.id: dump_message(each) for each in THREAD}
    found = merge_history(kept, [ToolMessage(id="r", tool_call_id="c", content="done"), THREAD[2]])
    assert texts(found.messages) == "1 one 2 done"


# --- titles -----------------------------------------------------------------------------------------------------------


@requirement("thread.title")
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


# --- calls without a result ---

USER = UserMessage(id="u", content="hi")
BELOW = AssistantMessage(id="s", content="done", subagent_run_id="sub")


def calling(*calls: str) -> AssistantMessage:
    function = FunctionCall(name="paint", arguments="{}")
    return AssistantMessage(id="a", tool_calls=[ToolCall(id=call, function=function) for call in calls])


def result(call: str) -> ToolMessage:
    return ToolMessage(id=f"result-{call}", tool_call_id=call, content="")


@pytest.mark.parametrize(
    ("messages", "calls"),
    [
        ([], []),
        ([USER], []),
        ([USER, calling("1", "2", "3"), result("2")], ["1", "3"]),
        ([USER, calling("1", "2"), result("2"), BELOW], ["1"]),
        ([USER, calling("1"), result("1")], []),
        ([USER, calling("1"), AssistantMessage(id="b", content="never mind")], []),
        ([USER, calling("1"), USER], []),
        ([result("1"), calling("1")], ["1"]),
    ],
)
def test_owed_is_what_the_assistant_has_asked_for_last(messages: Sequence[Message], calls: Sequence[str]) -> None:
    assert unanswered_calls(messages) == calls
