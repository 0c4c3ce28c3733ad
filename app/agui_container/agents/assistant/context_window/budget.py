"""The operator's limit on the tokens of a prompt, and the choice of how to shorten a prompt that exceeds it.

Rule: without a budget no tokens are counted and no events are emitted. A caller may lower the budget, never raise it.
"""

from enum import StrEnum

from msgspec import Struct, field

from agui_container.agents.assistant.context_window.summary import Summaries, Summariser
from agui_container.agents.assistant.context_window.tokens import MessageTokenCounter
from agui_container.agents.assistant.context_window.window import BoundedWindow, UnboundedWindow, Window
from agui_container.ports import Model, Prompt, RunContext


class Overflow(StrEnum):
    """Ways to shorten history that does not fit the budget."""

    TRIM = "trim"
    SUMMARISE = "summarise"


class ContextBudget(Struct, frozen=True):
    """The budget of every model call of an assistant.

    Attributes:
        tokens: maximum tokens of a prompt, without the answer; 0 means no budget.
        overflow: the way to shorten history that does not fit.
        summaries: cache of summaries, used with ``Overflow.SUMMARISE``.
    """

    tokens: int = 0
    overflow: Overflow = Overflow.TRIM
    summaries: Summaries = field(default_factory=Summaries)

    def open_window(self, model: Model, prompt: Prompt, ctx: RunContext) -> Window:
        """Return the window for a run that begins with this prompt. The caller's limit can only lower the budget."""
        tokens = min(filter(None, (self.tokens, ctx.allowance.context_tokens)), default=0)
        if not tokens:
            return UnboundedWindow(prompt.messages)
        counter = MessageTokenCounter.for_model(model)
        if self.overflow is Overflow.TRIM:
            return BoundedWindow(tokens, counter, prompt, ctx.emit)
        summariser = Summariser(model, counter, tokens, self.summaries, ctx)
        return BoundedWindow(tokens, counter, prompt, ctx.emit, summariser)
