"""Context windows of models: known by the name, or named by an option."""

import pytest

from agui_container.models import BedrockModel, BedrockOptions, OfflineModel, OpenAIModel, OpenAIOptions
from agui_container.ports import ContextWindowed, Model


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        (BedrockModel("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), 200_000),
        (BedrockModel("amazon.nova-micro-v1:0"), 128_000),
        (BedrockModel("some.other-model"), None),
        (BedrockModel("some.other-model", BedrockOptions(context_window=9)), 9),
        (BedrockModel("amazon.nova-micro-v1:0", BedrockOptions(context_window=9)), 9),
        (OpenAIModel("gpt-4o-mini"), 128_000),
        (OpenAIModel("gpt-5-chat-latest"), None),
        (OpenAIModel("qwen3", options=OpenAIOptions(context_window=32_768)), 32_768),
        (OfflineModel(), None),
    ],
)
def test_a_model_tells_its_context_window_if_it_is_known(model: Model, tokens: int | None) -> None:
    assert isinstance(model, ContextWindowed)
    assert model.context_window == tokens
