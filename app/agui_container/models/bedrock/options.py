"""Options of a Bedrock model.

Rule: plain frozen data. An option that is None is not sent, so the default of Bedrock or boto3 applies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field


class CachePlace(StrEnum):
    """Place of a ``cachePoint``. Everything before it is cached, in the order tools, system, messages."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A guardrail of Bedrock.

    ``mode`` ``sync`` checks text before it is streamed. ``async`` streams at once and may block later.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: str
    version: str
    mode: Literal["sync", "async"] | None = None
    trace: Literal["enabled", "disabled", "enabled_full"] | None = None


@dataclass(frozen=True, slots=True)
class BedrockOptions:
    """Options of ``BedrockModel``.

    Attributes:
        region: AWS region; None means ``AWS_REGION``, then boto3's default (``AWS_DEFAULT_REGION`` or the profile).
        endpoint_url: URL to use in place of the region's endpoint.
        connect_timeout: seconds to connect, per attempt.
        read_timeout: seconds without an event until a call fails; models may think for minutes.
        max_attempts: attempts per call; only a failure before the first delta is retried.
        max_calls: calls at the same time, each in its own thread; more are refused as throttled.
        cache: places of cache points; not every model accepts all places.
        cache_ttl: lifetime of cached prompts; None means Bedrock's default of 5 minutes.
        context_window: tokens of the model's context window, for clients; None means the known one of the model.
        additional_fields: ``additionalModelRequestFields``, for example the budget of Claude's thinking.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    region: str | None = None
    endpoint_url: str | None = None
    connect_timeout: Annotated[float, Field(gt=0)] = 5.0
    read_timeout: Annotated[float, Field(gt=0)] = 300.0
    max_attempts: Annotated[int, Field(ge=1)] = 4
    max_calls: Annotated[int, Field(ge=1)] = 256
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()
    cache: frozenset[CachePlace] = frozenset()
    cache_ttl: Literal["5m", "1h"] | None = None
    guardrail: Guardrail | None = None
    additional_fields: Mapping[str, object] = field(default_factory=dict)
    context_window: Annotated[int, Field(ge=1)] | None = None
