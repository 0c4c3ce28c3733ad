"""Texts, messages and tools are counted as the model counts, or by an estimate that pictures cannot fool."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DataSource,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from hypothesis import given
from hypothesis import strategies as st

from agui_container.agents.assistant.context_window.window import counter_for
from agui_container.models.offline import OfflineModel
from agui_container.ports import Delta, Prompt, UsageDelta
from agui_container.protocol.conversation.tokens import (
    MEDIA_TOKENS,
    PER_MESSAGE,
    CountedMessage,
    MessageTokenCounter,
    estimate_tokens,
    total_tokens,
)
from tests.agents.doubles import ScriptedModel

WORDS = MessageTokenCounter(lambda text: len(text.split()), per_message=0)
CALL = ToolCall(id="c", function=FunctionCall(name="add up", arguments='{"a": 1}'))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本", 2), ("\ud800", 1)])
def test_the_estimate_is_a_quarter_of_the_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_model_that_counts_is_taken_at_its_word() -> None:
    assert counter_for(OfflineModel()).count_message(UserMessage(id="u", content="one two three")).tokens == 3


def test_other_models_are_estimated() -> None:
    assert counter_for(ScriptedModel([])) == MessageTokenCounter(estimate_tokens, PER_MESSAGE)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(id="m", content="one two"), 2),
        (UserMessage(id="m", content=[TextPart(text="one"), TextPart(text="two")]), 2),
        (SystemMessage(id="m", content="one two"), 2),
        (AssistantMessage(id="m", content="one", tool_calls=[CALL]), 5),
        (AssistantMessage(id="m"), 0),
        (ReasoningMessage(id="m", content="one two", encrypted_value="three"), 2),
        (ToolMessage(id="m", tool_call_id="c", content="one", error="two"), 2),
        (ActivityMessage(id="m", activity_type="x", content={"one": "two"}), 0),
    ],
)
def test_every_text_of_a_message_counts(message: Message, tokens: int) -> None:
    assert WORDS.count_message(message) == CountedMessage(message, tokens)


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_picture_costs_the_same_whatever_its_size(size: int) -> None:
    picture = ImagePart(source=DataSource(value="A" * size, mime_type="image/png"))
    message = UserMessage(id="m", content=[TextPart(text="one"), picture])
    assert WORDS.count_message(message).tokens == 1 + MEDIA_TOKENS


def test_the_overhead_of_a_message_is_estimated_too() -> None:
    assert MessageTokenCounter().count_message(UserMessage(id="m", content="abcd")).tokens == 1 + PER_MESSAGE


def test_name_description_and_schema_of_a_tool_count() -> None:
    spec = ToolSpec(name="add", description="Add numbers.", parameters={"type": "object"})
    assert WORDS.count_tools([spec, spec]) == 2 * 4


@given(st.text(), st.integers(-2, 20))
def test_a_clipped_text_is_a_beginning_that_is_not_too_long(text: str, tokens: int) -> None:
    for counter in (MessageTokenCounter(), WORDS):
        clipped = counter.clip(text, tokens)
        assert text.startswith(clipped)
        assert counter.count(clipped) <= max(tokens, 0)
        assert clipped == text or counter.count(text) > tokens


async def test_the_offline_model_charges_what_it_counts() -> None:
    said: list[Message] = [
        UserMessage(id="u", content="add one and two"),
        AssistantMessage(id="a", content="I will", tool_calls=[CALL]),
        ToolMessage(id="t", tool_call_id="c", content="three it is"),
    ]
    usage = await usage_of(OfflineModel().stream(Prompt("Be very kind.", said)))
    counter = counter_for(OfflineModel())
    assert usage.input_tokens == counter.count("Be very kind.") + total_tokens(map(counter.count_message, said))


async def usage_of(deltas: AsyncIterator[Delta]) -> TokenUsage:
    (usage,) = [delta.usage async for delta in deltas if isinstance(delta, UsageDelta)]
    return usage
