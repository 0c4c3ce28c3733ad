"""Models for the wire server, short forms of deltas, and prompts."""

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ag_ui.core import Message, UserMessage
from ag_ui.core import Tool as ToolSpec

from agui_container.models import RetryPolicy
from agui_container.models.bedrock import BedrockModel, BedrockOptions
from agui_container.models.bedrock.reasoning_signature import verify_reasoning
from agui_container.ports import (
    Delta,
    EncryptedDelta,
    Prompt,
    ReasoningDelta,
    StopDelta,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from tests.secret_search import planted

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
USAGE = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
START: Mapping[str, Any] = {"messageStart": {"role": "assistant"}}
END: Mapping[str, Any] = {"messageStop": {"stopReason": "end_turn"}}
METADATA: Mapping[str, Any] = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}}


def text(said: str, index: int = 0) -> Mapping[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": said}}}


ANSWER = (START, text("Hello"), END, METADATA)


def as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of nobody, and none of those that this machine may have."""
    settings = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": planted("aws-key"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@dataclass
class Pauses:
    taken: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)

    def policy(self, attempts: int = 4) -> RetryPolicy:
        return RetryPolicy(retries=attempts - 1, longest=8.0, jitter=lambda: 0.0, sleep=self)


@dataclass
class BedrockModels:
    url: str
    pauses: Pauses

    def __call__(self, model_id: str = MODEL, **options: Any) -> BedrockModel:  # noqa: ANN401
        chosen = replace(BedrockOptions(endpoint_url=self.url, read_timeout=120), **options)
        return BedrockModel(model_id, chosen, retry_policy=self.pauses.policy(chosen.max_attempts))


def prompt(*said: str | Message, tools: Sequence[str] = (), system: str = "") -> Prompt:
    """A prompt; strings are the user's messages or names of tools."""
    messages = [
        UserMessage(id=f"m{number}", content=message) if isinstance(message, str) else message
        for number, message in enumerate(said or ("hi",))
    ]
    specs = [ToolSpec(name=name, description=f"Does {name}.", parameters={"type": "object"}) for name in tools]
    return Prompt(system, messages, specs)


async def collect_deltas(deltas: AsyncIterator[Delta]) -> list[Delta]:
    return [delta async for delta in deltas]


def short(deltas: Sequence[Delta], model_id: str = MODEL) -> list[list[object]]:
    """Deltas as scenarios write them; what is sealed is opened with the reasoning before it."""
    shown: list[list[object]] = []
    thought = ""
    for delta in deltas:
        if isinstance(delta, ReasoningDelta):
            thought += delta.text
            shown.append(["reasoning", delta.text])
        elif isinstance(delta, EncryptedDelta):
            shown.append(["sealed", _plain(verify_reasoning(model_id, thought, delta.value))])
            thought = ""
        else:
            shown.append(_short(delta))
    return shown


def _short(delta: Delta) -> list[object]:
    if isinstance(delta, TextDelta):
        return ["text", delta.text]
    if isinstance(delta, ToolCallDelta):
        return ["call", delta.index, delta.name, delta.arguments]
    if isinstance(delta, UsageDelta):
        return ["usage", delta.usage.model_dump(exclude_none=True, exclude={"provider", "model"})]
    assert isinstance(delta, StopDelta)
    return ["stop", delta.reason.value]


def _plain(content: Mapping[str, Any] | None) -> object:
    if content is not None and "redactedContent" in content:
        return {"redactedContent": base64.b64encode(content["redactedContent"]).decode()}
    return content


def model_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "model"]


async def threads_gone() -> None:
    for thread in model_threads():
        await asyncio.to_thread(thread.join, 10)
        assert not thread.is_alive()
