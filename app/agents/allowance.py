"""What one run may use: the operator's limits, and less where a caller asks for less in ``forwardedProps.budget``.

Rule: a caller never gets more than the operator allows, and an answer that is there is never taken back: what ends a
run is one model call more. An assistant looks before it makes one; of others' calls only ``ctx.usage`` tells,
afterwards. Tokens are those that models report: where none are reported none are counted, and an assistant's log says
so.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from ag_ui.core import RunAgentInput, TokenUsage
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from app.closing import closing
from app.core.errors import AppError, Code
from app.core.forwarded import forwarded
from app.ports import Agent, Allowance, Item, RunContext

Limit = Annotated[int, Field(ge=1, strict=True)]


class _Budget(BaseModel):
    """``forwardedProps.budget``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: Limit | None = None
    tokens: Limit | None = None


_BUDGET = TypeAdapter(_Budget)
NO_LIMITS = Allowance()


def allowed(ctx: RunContext, props: object, limits: Allowance) -> RunContext:
    """The context with what the run may use. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    asked = forwarded(props, "budget", _BUDGET)
    wanted = Allowance(asked.steps, asked.tokens) if asked else NO_LIMITS
    if limits == wanted == NO_LIMITS:
        return ctx
    return replace(ctx, allowance=limits.within(wanted).within(ctx.allowance))


def check_step(steps: int, most: int, ctx: RunContext) -> None:
    """Raises ``AppError`` RUN_LIMIT_EXCEEDED after as many model calls as an assistant may make, ``most`` at best."""
    if steps in (most, ctx.allowance.steps):
        raise AppError(Code.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {steps} model calls without finishing.")
    tokens = ctx.allowance.tokens
    if tokens is None:
        return
    if steps == 1 and not ctx.usage:
        ctx.logger.warning("the model reports no usage: the limit of tokens does not hold")
    if used(ctx.usage) >= tokens:
        raise AppError(Code.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {tokens} tokens without finishing.")


def used(usage: Sequence[TokenUsage]) -> int:
    """The tokens of these model calls, input and output."""
    return sum(each.total_tokens or (each.input_tokens or 0) + (each.output_tokens or 0) for each in usage)


@dataclass(frozen=True, slots=True)
class Limited:
    """Implements ``ports.Agent``: an agent whose model calls are known only from what it reports, within limits."""

    agent: Agent
    limits: Allowance

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """The agent's own stream; looked after only where tokens are limited."""
        ctx = allowed(ctx, input.forwarded_props, self.limits)
        items = self.agent.run(input, ctx)
        return items if ctx.allowance.tokens is None else _watched(items, ctx.allowance.tokens, ctx)


async def _watched(items: AsyncIterator[Item], tokens: int, ctx: RunContext) -> AsyncGenerator[Item, None]:
    calls: int | None = None
    async with closing(items):
        async for item in items:
            if calls is None and used(ctx.usage) >= tokens:
                calls = len(ctx.usage)
            if calls is not None and len(ctx.usage) > calls:
                raise AppError(Code.RUN_LIMIT_EXCEEDED, f"The agent stopped after {tokens} tokens without finishing.")
            yield item
