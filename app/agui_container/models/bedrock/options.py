"""What can be chosen about a Bedrock model. Rule: plain frozen data; what is None is left to Bedrock or to boto3."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field


class CachePlace(StrEnum):
    """Where a ``cachePoint`` is put; everything before it is cached (the order is tools, system, messages)."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A guardrail of Bedrock's. ``mode`` ``async`` streams first and may block later; ``sync`` holds text back."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: str
    version: str
    mode: Literal["sync", "async"] | None = None
    trace: Literal["enabled", "disabled", "enabled_full"] | None = None


@dataclass(frozen=True, slots=True)
class BedrockOptions:
    """Options of ``BedrockModel``.

    Attributes:
        region: AWS region; None takes ``AWS_REGION``, then boto3's own (``AWS_DEFAULT_REGION`` or the profile).
        endpoint_url: another endpoint than the region's.
        connect_timeout: seconds for a connection, per try.
        read_timeout: seconds of silence from Bedrock until a call fails; models may think long.
        max_attempts: tries per call; only failures before the first delta are tried again.
        max_calls: calls at once, each in a thread of its own; more are refused as throttled.
        cache: where cache points are put; not every model accepts all places.
        cache_ttl: how long Bedrock keeps them; None is its default of 5 minutes.
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
