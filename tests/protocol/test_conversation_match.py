"""Conversations that are sent under new ids: recognised by content, with kept ids as long as it matches.

Kept messages have short ids that say what they are: ``u1`` is the first of the user's. ``renamed`` gives copies, whose
ids of messages and calls are those with ``new-`` before them.
"""

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from agui_container.protocol.conversation.merge import dump_message, merge_history, without_copies
from tests.requirements import requirement

Messages = list[Message]


def new_ids(*messages: Message) -> Messages:
    """Return copies of messages with new ids of messages and calls."""
    return [renamed_one(message) for message in messages]


def renamed_one(message: Message) -> Message:
    update: dict[str, object] = {"id": f"new-{message.id}"}
    if isinstance(message, ToolMessage):
        update["tool_call_id"] = f"new-{message.tool_call_id}"
    if isinstance(message, AssistantMessage) and message.tool_calls:
        update["tool_calls"] = [call.model_copy(update={"id": f"new-{call.id}"}) for call in message.tool_calls]
    return message.model_copy(update=update)


def together(kept: Messages, sent: Messages) -> Messages:
    """Return the conversation for the agent."""
    return list(merge_history({message.id: dump_message(message) for message in kept}, sent).messages)


def ids(messages: Messages) -> str:
    return " ".join(message.id for message in messages)


def user(key: str, content: str | list[TextPart | ImagePart] = "hi") -> UserMessage:
    return UserMessage(id=key, content=content)


def answer(key: str, content: str | None = "hello") -> AssistantMessage:
    return AssistantMessage(id=key, content=content)


def calling(
    key: str, *call_ids: str, arguments: str = '{"a": 1, "b": [2]}', text: str | None = None
) -> AssistantMessage:
    function = FunctionCall(name="add", arguments=arguments)
    return AssistantMessage(id=key, content=text, tool_calls=[ToolCall(id=it, function=function) for it in call_ids])


def result(key: str, call_id: str, content: str = "3") -> ToolMessage:
    return ToolMessage(id=key, tool_call_id=call_id, content=content)


U1, A1, U2, A2, U3 = user("u1", "one"), answer("a1", "1"), user("u2", "two"), answer("a2", "2"), user("u3", "three")
CALL, RESULT, SUM = calling("c", "x"), result("r", "x"), answer("s", "The sum is 3.")
TEXT: Messages = [U1, A1, U2, A2]
TOOLS: Messages = [U1, CALL, RESULT, SUM]


# --- history and new messages -----------------------------------------------------------------------------------------


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("kept", "sent", "expected"),
    [
        pytest.param(TEXT, new_ids(U1, A1, U2, A2, U3), "u1 a1 u2 a2 new-u3", id="everything and what is new"),
        pytest.param(TEXT, new_ids(U1, A1, U2, A2), "u1 a1 u2 a2", id="everything"),
        pytest.param(TEXT, new_ids(U1, A1, U2), "u1 a1 u2", id="the last answer asked for again"),
        pytest.param(TEXT, new_ids(U1, A1), "u1 a1", id="cut off"),
        pytest.param(TEXT, new_ids(U1, A1, U3), "u1 a1 new-u3", id="the last question edited"),
        pytest.param(TEXT, new_ids(U1, A1, U3, A2), "u1 a1 new-u3 new-a2", id="what follows an edit is the client's"),
        pytest.param(TEXT, new_ids(U1, A1, U2, answer("a2", "zwei")), "u1 a1 u2 new-a2", id="an answer edited"),
        pytest.param(TEXT, new_ids(U1), "u1 a1 u2 a2 new-u1", id="the user's words alone are new"),
        pytest.param(TEXT, new_ids(U1, U2), "u1 a1 u2 a2 new-u1 new-u2", id="more of the user's words alone"),
        pytest.param(TEXT, new_ids(U3, A1), "u1 a1 u2 a2 new-u3 new-a1", id="another beginning"),
        pytest.param(TEXT, new_ids(U1, A2), "u1 a1 u2 a2 new-u1 new-a2", id="another first answer"),
        pytest.param(TEXT, new_ids(U2, A2, U3), "u1 a1 u2 a2 new-u2 new-a2 new-u3", id="a part"),
        pytest.param(TEXT, [*new_ids(U1, A1), U2], "u1 a1 u2", id="a beginning made anew before a known id"),
        pytest.param(TEXT, [U2, *new_ids(U1, A1)], "u1 a1 u2 a2 new-u1 new-a1", id="one known id makes ids count"),
        pytest.param([U1], new_ids(U1, A1, U2), "u1 new-u1 new-a1 new-u2", id="an answer that is not kept"),
        pytest.param([A1, U1], new_ids(A1, U1, A2), "a1 u1 new-a2", id="the assistant has spoken first"),
        pytest.param([U1, U2, A2], new_ids(U1, U2, A2, U3), "u1 u2 a2 new-u3", id="two questions, one answer"),
        pytest.param([], new_ids(U1, A1, U2), "new-u1 new-a1 new-u2", id="nothing is kept"),
    ],
)
def test_an_assistants_message_that_is_kept_proves_that_all_is_sent(
    kept: Messages, sent: Messages, expected: str
) -> None:
    assert ids(together(kept, sent)) == expected


@requirement("thread.new-ids")
def test_turn_after_turn_a_conversation_grows_by_what_is_new() -> None:
    kept: Messages = []
    for turn in range(1, 6):
        question = user(f"q{turn}", f"question {turn}")
        sent = [it.model_copy(update={"id": f"{turn}-{n}"}) for n, it in enumerate([*kept, question])]
        kept = [*together(kept, sent), answer(f"a{turn}", f"answer {turn}")]
    assert ids(kept) == "1-0 a1 2-2 a2 3-4 a3 4-6 a4 5-8 a5"


# --- equal messages ---------------------------------------------------------------------------------------------------

IMAGE = ImagePart(source=UrlSource(value="https://example.com/a.png", mime_type="image/png"))
OTHER = ImagePart(source=UrlSource(value="https://example.com/b.png", mime_type="image/png"))


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        pytest.param(user("m"), user("m", [TextPart(text="hi")]), id="a text and a list of it"),
        pytest.param(user("m", [TextPart(text="hi")]), user("m"), id="a list of a text and the text"),
        pytest.param(user("m", [IMAGE]), user("m", [TextPart(text=""), IMAGE]), id="an empty text beside an image"),
        pytest.param(user("m", ""), user("m", []), id="nothing said"),
        pytest.param(
            user("m", [IMAGE]),
            user("m", [IMAGE.model_copy(update={"metadata": {"filename": "a.png"}})]),
            id="an image with a file name",
        ),
        pytest.param(calling("m", "y"), calling("m", "y", text=""), id="no text and an empty text"),
        pytest.param(calling("m", "y"), calling("m", "y", arguments='{"b":[2.0],"a":1}'), id="arguments as JSON"),
        pytest.param(calling("m", "y", arguments=""), calling("m", "y", arguments="{}"), id="no arguments"),
        pytest.param(
            calling("m", "y", arguments="{"), calling("m", "y", arguments="{"), id="arguments that are no JSON"
        ),
        pytest.param(
            answer("m", "x").model_copy(update={"name": "Bob", "metadata": {"k": 1}}),
            answer("m", "x"),
            id="what is said beside a message",
        ),
    ],
)
def test_equal_content_is_a_copy(kept: Message, sent: Message) -> None:
    before: Messages = [U1, CALL, RESULT, SUM, kept, A2]
    assert together(before, new_ids(U1, CALL, RESULT, SUM, sent, A2, U3)) == [*before, *new_ids(U3)]


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        pytest.param(user("m", [IMAGE]), user("m", [OTHER]), id="another image"),
        pytest.param(user("m", "hi"), user("m", "hi "), id="another text"),
        pytest.param(user("m", "hi"), answer("m", "hi"), id="another role"),
        pytest.param(calling("m", "y"), calling("m", "y", arguments='{"a": true, "b": [2]}'), id="true is not 1"),
        pytest.param(calling("m", "y"), calling("m", "y", arguments='{"a": 1, "b": [2, 3]}'), id="other arguments"),
        pytest.param(calling("m", "y", arguments="[NaN]"), calling("m", "y", arguments="[null]"), id="no JSON"),
        pytest.param(calling("m", "y"), calling("m", "y", "z"), id="one call more"),
        pytest.param(calling("m", "y"), answer("m", "done"), id="no call"),
    ],
)
def test_other_content_is_a_difference(kept: Message, sent: Message) -> None:
    before: Messages = [U1, CALL, RESULT, SUM, kept, A2]
    assert ids(together(before, new_ids(U1, CALL, RESULT, SUM, sent, A2))) == "u1 c r s new-m new-a2"


# --- calls and their results ------------------------------------------------------------------------------------------


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("kept", "sent", "expected"),
    [
        pytest.param(TOOLS, new_ids(*TOOLS, U3), "u1 c r s new-u3", id="everything and what is new"),
        pytest.param(TOOLS, new_ids(U1, CALL, RESULT), "u1 c r", id="asked again behind the result"),
        pytest.param(TOOLS, new_ids(U1, CALL), "u1 c r", id="a result that the client has not got"),
        pytest.param(TOOLS, new_ids(U1, CALL, SUM, U3), "u1 c r s new-u3", id="a client without results"),
        pytest.param(TOOLS, new_ids(U1, SUM, U3), "u1 c r s new-u3", id="a client that keeps text alone"),
        pytest.param(TOOLS, new_ids(U1, CALL, result("r", "x", "4"), U3), "u1 c new-r new-u3", id="an edited result"),
        pytest.param(
            TOOLS, new_ids(U1, CALL, result("r", "x", "4"), SUM), "u1 c new-r new-s", id="what follows an edited result"
        ),
        pytest.param(
            TOOLS,
            new_ids(U1, calling("c", "x", arguments="{}"), RESULT),
            "u1 c r s new-u1 new-c new-r",
            id="another call",
        ),
    ],
)
def test_calls_are_matched_by_name_and_arguments(kept: Messages, sent: Messages, expected: str) -> None:
    assert ids(together(kept, sent)) == expected


PAIR = calling("c", "x", "y")


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("results", "sent", "expected"),
    [
        pytest.param([], [result("r", "x")], "u1 c new-r", id="the first result"),
        pytest.param([result("q", "y")], [result("r", "x")], "u1 c q new-r", id="the client's beside the server's"),
        pytest.param([result("q", "y")], [result("r", "x"), result("q", "y")], "u1 c q new-r", id="and that one, too"),
        pytest.param(
            [result("r", "x"), result("q", "y")], [result("q", "y"), result("r", "x")], "u1 c r q", id="turned"
        ),
        pytest.param(
            [result("r", "x"), result("q", "y")],
            [result("r", "x", "4"), result("q", "y")],
            "u1 c new-r q",
            id="one edited",
        ),
    ],
)
def test_results_find_their_calls(results: Messages, sent: Messages, expected: str) -> None:
    found = together([U1, PAIR, *results], new_ids(U1, PAIR, *sent))
    assert ids(found) == expected
    assert all(it.tool_call_id in {"x", "y"} for it in found if isinstance(it, ToolMessage))


@requirement("thread.new-ids")
def test_call_ids_that_are_used_twice_mean_the_call_before_the_result() -> None:
    again = calling("c2", "x", arguments="{}")
    kept: Messages = [U1, calling("c1", "p"), result("r1", "p"), A1, U2, calling("c2", "q", arguments="{}")]
    sent: Messages = new_ids(U1, calling("c1", "x"), result("r1", "x"), A1, U2, again, result("r2", "x", "5"))
    found = together(kept, sent)
    assert ids(found) == "u1 c1 r1 a1 u2 c2 new-r2"
    assert found[-1] == ToolMessage(id="new-r2", tool_call_id="q", content="5")


@requirement("thread.new-ids")
def test_results_of_a_changed_call_keep_the_id_that_was_sent() -> None:
    changed = calling("c2", "x", arguments='{"a": 7}')
    kept: Messages = [U1, calling("c1", "p"), result("r1", "p"), A1, U2, A2]
    sent: Messages = new_ids(U1, calling("c1", "x"), result("r1", "x"), A1, U2, changed, result("r2", "x", "5"))
    found = together(kept, sent)
    assert ids(found) == "u1 c1 r1 a1 u2 new-c2 new-r2"
    assert found[-1] == ToolMessage(id="new-r2", tool_call_id="new-x", content="5")


# --- messages without fields that clients drop ------------------------------------------------------------------------

THOUGHT = ReasoningMessage(id="t", content="Hm.", encrypted_value="sealed")
SHOWN = ActivityMessage(id="v", activity_type="chart", content={"x": [1, None]})
ORDERS = SystemMessage(id="i", content="Be short.")
BELOW = AssistantMessage(id="b", content="It is 3.", subagent_run_id="run-b")
DELEGATED: Messages = [U1, CALL, BELOW, RESULT, SUM]


@requirement("thread.new-ids")
@pytest.mark.parametrize(
    ("kept", "sent", "expected"),
    [
        pytest.param([U1, THOUGHT, A1], new_ids(U1, A1, U2), "u1 t a1 new-u2", id="reasoning"),
        pytest.param([U1, THOUGHT, A1], new_ids(U1, THOUGHT, A1, U2), "u1 t a1 new-u2", id="reasoning that is sent"),
        pytest.param([U1, A1, U2, THOUGHT, A2], new_ids(U1, A1, U2), "u1 a1 u2", id="reasoning of a dropped answer"),
        pytest.param(
            [U1, A1, U2, THOUGHT, A2],
            new_ids(U1, A1, U2, THOUGHT),
            "u1 a1 u2 t",
            id="reasoning that is sent without it",
        ),
        pytest.param([U1, A1, SHOWN], new_ids(U1, A1, U2), "u1 a1 v new-u2", id="an activity"),
        pytest.param([U1, A1, SHOWN], new_ids(U1, A1, SHOWN, U2), "u1 a1 v new-u2", id="an activity that is sent"),
        pytest.param([ORDERS, U1, A1], new_ids(ORDERS, U1, A1, U2), "i u1 a1 new-u2", id="instructions"),
        pytest.param([ORDERS, U1, A1], new_ids(U1, A1, U2), "i u1 a1 new-u2", id="instructions that are not sent"),
        pytest.param(
            [ORDERS, U1, A1],
            new_ids(SystemMessage(id="i", content="It is noon."), U1, A1, U2),
            "new-i u1 a1 new-u2",
            id="instructions that change",
        ),
        pytest.param(
            [ORDERS, U1, A1],
            new_ids(ORDERS, DeveloperMessage(id="d", content="More."), U1, A1),
            "i new-d u1 a1",
            id="more instructions",
        ),
        pytest.param([U1, A1], new_ids(ORDERS, U1, A1, U2), "new-i u1 a1 new-u2", id="instructions that are new"),
        pytest.param(DELEGATED, new_ids(U1, CALL, RESULT, SUM, U2), "u1 c b r s new-u2", id="a subagent's words"),
        pytest.param(DELEGATED, new_ids(U1, CALL, RESULT), "u1 c b r", id="a subagent's words before a dropped answer"),
        pytest.param(DELEGATED, new_ids(*DELEGATED, U2), "u1 c b r s new-u2", id="a subagent's words that are sent"),
        pytest.param(
            DELEGATED,
            new_ids(U1, CALL, answer("b", "It is 3."), RESULT, SUM, U2),
            "u1 c b r s new-u2",
            id="a subagent's words as the assistant's own",
        ),
        pytest.param([U1, CALL, BELOW], new_ids(U1, CALL), "u1 c b", id="a subagent that waits for an answer"),
        pytest.param([U1, answer("e", "")], new_ids(U1, answer("e", None), U2), "u1 e new-u2", id="an answer cut off"),
    ],
)
def test_messages_that_clients_drop_stay_beside_their_matches(kept: Messages, sent: Messages, expected: str) -> None:
    assert ids(together(kept, sent)) == expected


@requirement("thread.new-ids")
def test_changing_instructions_do_not_pile_up() -> None:
    kept: Messages = []
    for turn in range(4):
        sent = new_ids(
            SystemMessage(id=f"i{turn}", content=f"It is {turn}."), *(it for it in kept if it.role != "system")
        )
        found = together(kept, [it.model_copy(update={"id": f"{turn}-{it.id}"}) for it in sent] + [user(f"q{turn}")])
        kept = [*found, answer(f"a{turn}")]
        assert [it.role for it in kept].count("system") == 1
    assert len(kept) == 9


# --- stores and queues ------------------------------------------------------------------------------------------------


@requirement("thread.new-ids")
def test_a_message_that_is_stored_already_is_not_written_again() -> None:
    kept: dict[str, bytes] = {it.id: dump_message(it) for it in DELEGATED}
    found = merge_history(kept, new_ids(U1, CALL, RESULT, SUM, U2))
    assert (found.changed, found.order) == ({"new-u2": dump_message(renamed_one(U2))}, None)
    cut = merge_history(kept, new_ids(U1, CALL, RESULT))
    assert (cut.changed, cut.order) == ({}, ["u1", "c", "b", "r"])


@requirement("thread.new-ids")
def test_of_a_run_that_has_waited_only_what_is_new_counts() -> None:
    kept = {it.id: dump_message(it) for it in TEXT}
    assert ids(list(without_copies(kept, new_ids(U1, A1, U2, U3)))) == "new-u3"
    assert ids(list(without_copies(kept, new_ids(U1, A1, U3)))) == "new-u3"
    assert ids(list(without_copies(kept, new_ids(U3)))) == "new-u3"


MESSAGES: st.SearchStrategy[Messages] = st.lists(
    st.sampled_from([U1, U2, A1, A2, CALL, RESULT, SUM, THOUGHT, ORDERS, BELOW, answer("e", "")]),
    unique_by=lambda it: str(it.id),
)


@requirement("thread.new-ids")
@given(MESSAGES, MESSAGES)
def test_agent_and_store_have_the_same_conversation_for_any_messages(kept: Messages, sent: Messages) -> None:
    before = {it.id: dump_message(it) for it in kept}
    found = merge_history(before, new_ids(*sent))
    stored = {**before, **found.changed}
    after = stored if found.order is None else {key: stored[key] for key in found.order}
    assert after == {it.id: dump_message(it) for it in found.messages}
    assert list(after) == [it.id for it in found.messages]
    assert all(key not in before for key in found.changed)


@requirement("thread.new-ids")
@given(MESSAGES)
def test_messages_that_are_sent_a_second_time_add_nothing(kept: Messages) -> None:
    if any(isinstance(it, AssistantMessage) and it.subagent_run_id is None for it in kept):
        assert together(kept, new_ids(*kept)) == kept


@requirement("thread.new-ids")
def test_a_long_conversation_is_matched_in_time_that_grows_with_it() -> None:
    calls = [f"call-{n}" for n in range(5_000)]
    kept: Messages = [U1, calling("c", *calls, arguments="{}"), *(result(f"r{it}", it) for it in calls), SUM]
    kept += [AssistantMessage(id=f"b{n}", content=f"{n}", subagent_run_id="s") for n in range(5_000)]
    assert together(kept, new_ids(*kept)) == kept
