"""Limits on the model calls and tokens of one run: the stricter of the operator's and the caller's.

Rule: an answer that has been streamed is never withdrawn. A run over its limit ends at its next model call. The
assistant checks before each call. Other agents are checked by the calls that they report in ``ctx.usage``. Only tokens
that models report are counted. If a model reports none, the assistant logs that the limit has no effect.
"""

from collections.abc import AsyncGenerator, AsyncIterator

from ag_ui.core import RunAgentInput
from msgspec import Struct
from msgspec.structs import replace

from agui_container.log_values import format_fields
from agui_container.ports import Agent, Item, RunContext, RunLimits
from agui_container.ports.agent import maybe_aclosing
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.token_usage import count_tokens

NO_LIMITS = RunLimits()


def with_limits(ctx: RunContext, limits: RunLimits) -> RunContext:
    return ctx if limits == NO_LIMITS else replace(ctx, limits=limits.capped_by(ctx.limits))


def check_step(steps: int, max_steps: int, ctx: RunContext) -> None:
    """Check that another model call may follow ``steps`` calls. Raises ``AppError`` RUN_LIMIT_EXCEEDED."""
    if steps in (max_steps, ctx.limits.steps):
        raise AppError(
            ErrorCode.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {steps} model calls without finishing."
        )
    if steps == 1 and not ctx.usage and ctx.limits.tokens is not None:
        ctx.logger.warning(
            "token limit has no effect because the model reports no usage %s", format_fields({"run": ctx.run_id})
        )
    check_tokens(ctx)


def check_tokens(ctx: RunContext) -> None:
    tokens = ctx.limits.tokens
    if tokens is not None and count_tokens(ctx.usage) >= tokens:
        raise AppError(ErrorCode.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {tokens} tokens without finishing.")


class LimitedAgent(Struct, frozen=True):
    """Implements ``ports.Agent``: any agent, with a token limit that is checked against the usage that it reports."""

    agent: Agent
    limits: RunLimits

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx = with_limits(ctx, self.limits)
        items = self.agent.run(input, ctx)
        return items if ctx.limits.tokens is None else _stop_over_limit(items, ctx.limits.tokens, ctx)


async def _stop_over_limit(items: AsyncIterator[Item], tokens: int, ctx: RunContext) -> AsyncGenerator[Item, None]:
    """Raise ``AppError`` RUN_LIMIT_EXCEEDED when the agent reports another model call after its tokens were used up."""
    calls_at_limit: int | None = None
    async with maybe_aclosing(items):
        async for item in items:
            if calls_at_limit is None and count_tokens(ctx.usage) >= tokens:
                calls_at_limit = len(ctx.usage)
            if calls_at_limit is not None and len(ctx.usage) > calls_at_limit:
                raise AppError(
                    ErrorCode.RUN_LIMIT_EXCEEDED, f"The agent stopped after {tokens} tokens without finishing."
                )
            yield item
