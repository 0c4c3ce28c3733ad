"""Models: each turns a prompt into a stream of deltas.

Rule: a model knows no agent, engine or transport, and raises its failures as ``AppError`` with a
``MODEL_*`` code.
"""

from typing import TYPE_CHECKING

from agui_container.imports import lazy_attributes

__all__ = [
    "BedrockModel",
    "BedrockOptions",
    "CachePlace",
    "Guardrail",
    "OfflineModel",
    "OpenAIModel",
    "OpenAIOptions",
    "RetryPolicy",
]

if TYPE_CHECKING:
    from agui_container.models.bedrock import BedrockModel, BedrockOptions, CachePlace, Guardrail
    from agui_container.models.failures import RetryPolicy
    from agui_container.models.offline import OfflineModel
    from agui_container.models.openai import OpenAIModel, OpenAIOptions
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "BedrockModel": "models.bedrock",
            "BedrockOptions": "models.bedrock",
            "CachePlace": "models.bedrock",
            "Guardrail": "models.bedrock",
            "OfflineModel": "models.offline",
            "OpenAIModel": "models.openai",
            "OpenAIOptions": "models.openai",
            "RetryPolicy": "models.failures",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
