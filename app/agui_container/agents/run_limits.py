"""What one run's model calls may use: the operator's limits, within what its caller asked for (``ctx.allowance``).

Rule: an answer that is there is never taken back: what ends a run is one model call more. An assistant looks before it
makes one; of others' calls only ``ctx.usage`` tells, afterwards. Tokens are those that models report: where none are
reported none are counted, and an assistant's log says so.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from ag_ui.core import RunAgentInput
from msgspec import Struct

from agui_container.ports import Agent, Item, RunContext, RunLimits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.token_usage import count_tokens
from agui_container.runtime.aclosing import maybe_aclosing

NO_LIMITS = RunLimits()


def with_limits(ctx: RunContext, limits: RunLimits) -> RunContext:
    """The context with what the run may use under these limits, too."""
    return ctx if limits == NO_LIMITS else replace(ctx, allowance=limits.capped_by(ctx.allowance))


def check_step(steps: int, most: int, ctx: RunContext) -> None:
    """Raises ``AppError`` RUN_LIMIT_EXCEEDED after as many model calls as an assistant may make, ``most`` at best."""
    if steps in (most, ctx.allowance.steps):
        raise AppError(
            ErrorCode.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {steps} model calls without finishing."
        )
    if steps == 1 and not ctx.usage and ctx.allowance.tokens is not None:
        ctx.logger.warning("the model reports no usage: the limit of tokens does not hold")
    check_tokens(ctx)


def check_tokens(ctx: RunContext) -> None:
    """Raises ``AppError`` RUN_LIMIT_EXCEEDED where the run has used what it may."""
    tokens = ctx.allowance.tokens
    if tokens is not None and count_tokens(ctx.usage) >= tokens:
        raise AppError(ErrorCode.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {tokens} tokens without finishing.")


class LimitedAgent(Struct, frozen=True):
    """Implements ``ports.Agent``: an agent whose model calls are known only from what it reports, within limits."""

    agent: Agent
    limits: RunLimits

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """The agent's own stream; looked after only where tokens are limited."""
        ctx = with_limits(ctx, self.limits)
        items = self.agent.run(input, ctx)
        return items if ctx.allowance.tokens is None else _count_tokens(items, ctx.allowance.tokens, ctx)


async def _count_tokens(items: AsyncIterator[Item], tokens: int, ctx: RunContext) -> AsyncGenerator[Item, None]:
    calls: int | None = None
    async with maybe_aclosing(items):
        async for item in items:
            if calls is None and count_tokens(ctx.usage) >= tokens:
                calls = len(ctx.usage)
            if calls is not None and len(ctx.usage) > calls:
                raise AppError(
                    ErrorCode.RUN_LIMIT_EXCEEDED, f"The agent stopped after {tokens} tokens without finishing."
                )
            yield item
