"""How many tokens a model call may be sent, and what happens to those that are too many: the operator's choice.

Rule: without a budget nothing is counted and nothing is told. A caller may ask for fewer tokens, never for more.
"""

from enum import StrEnum

from msgspec import Struct, field

from agui_container.agents.assistant.context_window.summary import Summaries, Summariser
from agui_container.agents.assistant.context_window.tokens import MessageTokenCounter
from agui_container.agents.assistant.context_window.window import BoundedWindow, UnboundedWindow, Window
from agui_container.ports import Model, Prompt, RunContext


class Overflow(StrEnum):
    """What becomes of history that does not fit."""

    TRIM = "trim"
    SUMMARISE = "summarise"


class ContextBudget(Struct, frozen=True):
    """At most ``tokens`` per model call, the answer not included; 0 is no budget."""

    tokens: int = 0
    overflow: Overflow = Overflow.TRIM
    summaries: Summaries = field(default_factory=Summaries)

    def open_window(self, model: Model, prompt: Prompt, ctx: RunContext) -> Window:
        """The window of a run that begins with this prompt."""
        tokens = min(filter(None, (self.tokens, ctx.allowance.context_tokens)), default=0)
        if not tokens:
            return UnboundedWindow(prompt.messages)
        counter = MessageTokenCounter.for_model(model)
        if self.overflow is Overflow.TRIM:
            return BoundedWindow(tokens, counter, prompt, ctx.emit)
        summariser = Summariser(model, counter, tokens, self.summaries, ctx)
        return BoundedWindow(tokens, counter, prompt, ctx.emit, summariser)
