"""The context window: for any history, a prompt fits the budget if it can, and calls stay with their results."""

from collections.abc import Callable, Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from hypothesis import given
from hypothesis import strategies as st

from agui_container.assistant.context_window.tokens import CountedMessage, MessageTokenCounter
from agui_container.assistant.context_window.window import (
    MAX_LISTED_MESSAGES,
    SNAPSHOT,
    BoundedWindow,
    ContextBudget,
    find_cut,
    is_instruction,
    run_start,
)
from agui_container.assistant.history import trusted_conversation
from agui_container.ports import Item, Prompt
from agui_container.ports.notices import CONTEXT_COMPACTED
from tests.agents.doubles import ScriptedModel
from tests.contexts import run_context

Count = Callable[[str], int]


def words(text: str) -> int:
    return len(text.split())


class RecordingWindow(BoundedWindow):
    def __init__(self, budget: int, prompt: Prompt, count: Count = words) -> None:
        self.heard: list[Item] = []
        super().__init__(budget, MessageTokenCounter(count, per_message=0), prompt, self.heard.append)

    def values(self, name: str) -> list[dict[str, object]]:
        values = [event.value for event in self.heard if isinstance(event, CustomEvent) and event.name == name]
        assert len(values) == len(self.heard)
        self.heard.clear()
        return values


def window(budget: int, *messages: Message, system: str = "", count: Count = words) -> RecordingWindow:
    return RecordingWindow(budget, Prompt(system, messages), count)


def user(name: str, tokens: int = 1) -> UserMessage:
    return UserMessage(id=name, content="word " * tokens)


def assistant(name: str, tokens: int = 1, *calls: str) -> AssistantMessage:
    made = [ToolCall(id=call, function=FunctionCall(name="", arguments="")) for call in calls]
    return AssistantMessage(id=name, content="word " * tokens, tool_calls=made or None)


def result(call: str, tokens: int = 1) -> ToolMessage:
    return ToolMessage(id=f"result-{call}", tool_call_id=call, content="word " * tokens)


def ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


async def compaction_values(bounded: RecordingWindow) -> list[dict[str, object]]:
    await bounded.fit()
    return bounded.values(CONTEXT_COMPACTED)


def snapshot_value(bounded: RecordingWindow) -> dict[str, object]:
    bounded.snapshot()
    (value,) = bounded.values(SNAPSHOT)
    return value


async def test_the_oldest_turns_go_and_the_client_is_told() -> None:
    bounded = window(8, user("u"), assistant("a", 3), user("v"), assistant("b"), user("w", 2), system="be kind")
    assert await compaction_values(bounded) == [
        {"strategy": "trim", "messagesBefore": 5, "messagesAfter": 3, "tokensBefore": 10, "tokensAfter": 6}
    ]
    assert ids(bounded.messages) == ["v", "b", "w"]


def test_the_cut_stays_while_a_thread_grows_by_less_than_a_step() -> None:
    history = [CountedMessage(user(str(at)), 10) for at in range(20)]
    assert [find_cut(history, excess, 25) for excess in (1, 10, 25, 26, 50, 51)] == [3, 3, 3, 5, 5, 8]


TOKENS = st.integers(0, 5)


def conversations(*call_ids: str) -> st.SearchStrategy[list[Message]]:
    calls = st.sampled_from(call_ids)
    return st.lists(
        st.one_of(
            st.builds(lambda tokens: user("u", tokens), TOKENS),
            st.builds(lambda tokens: ReasoningMessage(id="r", content="word " * tokens), TOKENS),
            st.builds(lambda tokens: SystemMessage(id="s", content="word " * tokens), TOKENS),
            st.builds(lambda tokens, made: assistant("a", tokens, *made), TOKENS, st.sets(calls, max_size=3)),
            st.builds(lambda tokens, call: result(call, tokens), TOKENS, calls),
        ),
        max_size=40,
    )


@given(said=conversations(*"abcdef"), grown=conversations(*"uvwxyz"), budget=st.integers(1, 60), trusted=st.booleans())
async def test_no_history_is_cut_where_it_must_not_be(
    said: list[Message], grown: list[Message], budget: int, *, trusted: bool
) -> None:
    begun = trusted_conversation(said, trust_instructions=trusted)
    brought = [message for message in trusted_conversation(grown) if not isinstance(message, UserMessage)]
    start = run_start(begun)
    must = {id(message) for message in (*filter(is_instruction, begun[:start]), *begun[start:], *brought)}
    bounded = window(budget, *begun)
    kept = bounded.messages
    for more in ([], brought):
        bounded.add(more)
        await bounded.fit()
        kept = bounded.messages
        by_choice = [message for message in kept if id(message) not in must]
        assert bounded.tokens <= budget or not by_choice
        assert trusted_conversation(kept, trust_instructions=True) == kept  # so every call has its results
        assert len(kept) == len(begun) + len(more) or not by_choice or isinstance(by_choice[0], UserMessage)
    there = {id(message) for message in kept}
    assert must <= there
    assert [message for message in (*begun, *brought) if id(message) in there] == kept


async def test_a_snapshot_tells_where_the_tokens_are() -> None:
    spec = ToolSpec(name="add", description="Add.", parameters={"type": "object"})
    prompt = Prompt("be kind", [user("u", 2), assistant("a"), user("v", 3)], [spec])
    bounded = RecordingWindow(20, prompt)
    bounded.add([assistant("b", 4)])
    assert snapshot_value(bounded) == {
        "contextSize": 20,
        "systemTokens": 2,
        "toolTokens": 3,
        "historyTokens": 3,
        "runTokens": 7,
        "totalTokens": 15,
        "remainingTokens": 5,
        "historyMessages": 2,
        "runMessages": 2,
        "messages": [
            {"id": "u", "role": "user", "source": "history", "tokens": 2},
            {"id": "a", "role": "assistant", "source": "history", "tokens": 1},
            {"id": "v", "role": "user", "source": "run", "tokens": 3},
            {"id": "b", "role": "assistant", "source": "run", "tokens": 4},
        ],
    }


def test_a_snapshot_lists_the_newest_messages_only() -> None:
    bounded = window(9_999, *(user(str(at)) for at in range(MAX_LISTED_MESSAGES + 5)))
    value = snapshot_value(bounded)
    listed = value["messages"]
    assert isinstance(listed, list)
    assert (len(listed), listed[0]["id"], value["historyMessages"]) == (
        MAX_LISTED_MESSAGES,
        "5",
        MAX_LISTED_MESSAGES + 4,
    )
    assert value["olderMessages"] == [{"role": "user", "source": "history", "count": 5, "tokens": 5}]


@pytest.mark.parametrize(("model_window", "size"), [(None, 100), (40, 40), (200, 100)])
def test_a_snapshot_tells_the_smaller_of_budget_and_window_of_the_model(model_window: int | None, size: int) -> None:
    class WindowedModel(ScriptedModel):
        context_window = model_window

    heard: list[Item] = []
    prompt = Prompt("", [user("u")])
    opened = ContextBudget(100).open_window(WindowedModel([]), prompt, run_context(emit=heard.append))
    opened.snapshot()
    (event,) = heard
    assert isinstance(event, CustomEvent)
    assert (event.value["contextSize"], event.value["remainingTokens"]) == (size, size - event.value["totalTokens"])
