"""Conversations that are sent under new ids: recognised by content, with kept ids as long as it matches.

Kept messages have short ids that say what they are: ``u1`` is the first of the user's. ``renamed`` gives copies, whose
ids of messages and calls are those with ``new-`` before them.
"""

import pytest
from ag_ui import core as ag
from hypothesis import given
from hypothesis import strategies as st

from agui_container.conversation.merge import merge_history
from agui_container.conversation.message_json import dump_message

Messages = list[ag.Message]


def new_ids(*messages: ag.Message) -> Messages:
    return [renamed_one(message) for message in messages]


def renamed_one(message: ag.Message) -> ag.Message:
    update: dict[str, object] = {"id": f"new-{message.id}"}
    if isinstance(message, ag.ToolMessage):
        update["tool_call_id"] = f"new-{message.tool_call_id}"
    if isinstance(message, ag.AssistantMessage) and message.tool_calls:
        update["tool_calls"] = [call.model_copy(update={"id": f"new-{call.id}"}) for call in message.tool_calls]
    return message.model_copy(update=update)


def together(kept: Messages, sent: Messages) -> Messages:
    return list(merge_history({message.id: dump_message(message) for message in kept}, sent).messages)


def ids(messages: Messages) -> str:
    return " ".join(message.id for message in messages)


def user(key: str, content: str | list[ag.TextPart | ag.ImagePart] = "hi") -> ag.UserMessage:
    return ag.UserMessage(id=key, content=content)


def answer(key: str, content: str | None = "hello") -> ag.AssistantMessage:
    return ag.AssistantMessage(id=key, content=content)


def calling(
    key: str, *call_ids: str, arguments: str = '{"a": 1, "b": [2]}', text: str | None = None
) -> ag.AssistantMessage:
    function = ag.FunctionCall(name="add", arguments=arguments)
    return ag.AssistantMessage(
        id=key, content=text, tool_calls=[ag.ToolCall(id=it, function=function) for it in call_ids]
    )


def result(key: str, call_id: str, content: str = "3") -> ag.ToolMessage:
    return ag.ToolMessage(id=key, tool_call_id=call_id, content=content)


U1, A1, U2, A2, U3 = user("u1", "one"), answer("a1", "1"), user("u2", "two"), answer("a2", "2"), user("u3", "three")
CALL, RESULT, SUM = calling("c", "x"), result("r", "x"), answer("s", "The sum is 3.")
TEXT: Messages = [U1, A1, U2, A2]
TOOLS: Messages = [U1, CALL, RESULT, SUM]
THOUGHT = ag.ReasoningMessage(id="t", content="Hm.", encrypted_value="sealed")
SHOWN = ag.ActivityMessage(id="v", activity_type="chart", content={"x": [1, None]})
OTHER_SHOWN = ag.ActivityMessage(id="o", activity_type="note", content={})
ORDERS = ag.SystemMessage(id="i", content="Be short.")
BELOW = ag.AssistantMessage(id="b", content="It is 3.", subagent_run_id="run-b")
DELEGATED: Messages = [U1, CALL, BELOW, RESULT, SUM]


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
        pytest.param(TOOLS, new_ids(*TOOLS, U3), "u1 c r s new-u3", id="everything and what is new, with calls"),
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
        pytest.param(
            [U1, A1, SHOWN], [U1, A1, OTHER_SHOWN, U2], "u1 a1 v o u2", id="an activity beside one of the client's own"
        ),
        pytest.param([ORDERS, U1, A1], new_ids(ORDERS, U1, A1, U2), "i u1 a1 new-u2", id="instructions"),
        pytest.param([ORDERS, U1, A1], new_ids(U1, A1, U2), "i u1 a1 new-u2", id="instructions that are not sent"),
        pytest.param(
            [ORDERS, U1, A1],
            new_ids(ag.SystemMessage(id="i", content="It is noon."), U1, A1, U2),
            "new-i u1 a1 new-u2",
            id="instructions that change",
        ),
        pytest.param(
            [ORDERS, U1, A1],
            new_ids(ORDERS, ag.DeveloperMessage(id="d", content="More."), U1, A1),
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
def test_what_is_kept_is_recognised_under_new_ids(kept: Messages, sent: Messages, expected: str) -> None:
    assert ids(together(kept, sent)) == expected


IMAGE = ag.ImagePart(source=ag.UrlSource(value="https://example.com/a.png", mime_type="image/png"))
OTHER = ag.ImagePart(source=ag.UrlSource(value="https://example.com/b.png", mime_type="image/png"))


@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        pytest.param(user("m"), user("m", [ag.TextPart(text="hi")]), id="a text and a list of it"),
        pytest.param(user("m", [ag.TextPart(text="hi")]), user("m"), id="a list of a text and the text"),
        pytest.param(user("m", [IMAGE]), user("m", [ag.TextPart(text=""), IMAGE]), id="an empty text beside an image"),
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
def test_equal_content_is_a_copy(kept: ag.Message, sent: ag.Message) -> None:
    before: Messages = [U1, CALL, RESULT, SUM, kept, A2]
    assert together(before, new_ids(U1, CALL, RESULT, SUM, sent, A2, U3)) == [*before, *new_ids(U3)]


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
def test_other_content_is_a_difference(kept: ag.Message, sent: ag.Message) -> None:
    before: Messages = [U1, CALL, RESULT, SUM, kept, A2]
    assert ids(together(before, new_ids(U1, CALL, RESULT, SUM, sent, A2))) == "u1 c r s new-m new-a2"


PAIR = calling("c", "x", "y")


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
    assert all(it.tool_call_id in {"x", "y"} for it in found if isinstance(it, ag.ToolMessage))


MESSAGES: st.SearchStrategy[Messages] = st.lists(
    st.sampled_from([U1, U2, A1, A2, CALL, RESULT, SUM, THOUGHT, ORDERS, BELOW, answer("e", "")]),
    unique_by=lambda it: str(it.id),
)


@given(MESSAGES, MESSAGES)
def test_agent_and_store_have_the_same_conversation_for_any_messages(kept: Messages, sent: Messages) -> None:
    before = {it.id: dump_message(it) for it in kept}
    found = merge_history(before, new_ids(*sent))
    stored = {**before, **found.changed}
    after = stored if found.order is None else {key: stored[key] for key in found.order}
    assert after == {it.id: dump_message(it) for it in found.messages}
    assert list(after) == [it.id for it in found.messages]
    assert all(key not in before for key in found.changed)
