"""Figures of AgentCore, and the configuration of a runtime and of the platform around it.

Sources: devguide ``bedrock-agentcore-limits``, ``runtime-lifecycle-settings``, ``runtime-v2-optimize``.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agui_container.aws.platform.authorizer import InboundAuthorizer
from agui_container.aws.platform.containers import ContainerFactory


@dataclass(frozen=True, slots=True)
class PlatformLimits:
    """Limits of the platform. Times are seconds."""

    idle_seconds: float = 900.0  # idleRuntimeSessionTimeout
    lifetime_seconds: float = 28_800.0  # maxLifetime, which never starts again
    ping_seconds: float = 2.0
    sync_seconds: float = 900.0  # an answer that is no stream, and the head of any answer
    stream_seconds: float = 3600.0  # SSE and WebSocket
    start_seconds: float = 120.0  # in which /ping must become healthy
    ping_answer_seconds: float = 5.0  # AgentCore does not tell its own
    failed_pings: int = 3  # in a row; AgentCore does not tell its own
    stop_seconds: float = 15.0  # between SIGTERM and SIGKILL
    payload_bytes: int = 100_000_000
    frame_bytes: int = 65_536  # of a WebSocket, in both directions
    frames_per_second: int = 250  # of one connection in a second, in each direction


@dataclass(frozen=True, slots=True)
class PlatformOptions:
    make_container: ContainerFactory
    authorizer: InboundAuthorizer
    limits: PlatformLimits = field(default_factory=PlatformLimits)
    allowed_headers: frozenset[str] = frozenset()  # requestHeaderAllowlist, in lower case
    path: str = "/invocations"  # protocolConfiguration.path
    freezes: bool = True  # False leaves idle containers running
    now: Callable[[], float] = time.monotonic  # seconds that count for idle time and lifetime
