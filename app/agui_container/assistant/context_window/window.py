"""The budget of a prompt, the messages that a model call gets under it, and the events that report changes.

Rules:

- The system text, the tools, trusted instructions and the current run are never dropped. The current run is the last
  user message and everything after it.
- Of the earlier history the oldest turns are dropped first, each as a whole. A turn is a user message and the messages
  after it. So a call never loses its results, an answer never loses its reasoning, and the kept history begins with a
  user message.
- The number of dropped tokens is rounded up to a quarter of the budget. The cut then stays in place for many model
  calls and runs, so a provider's prompt cache stays valid and a summary can be used again.
- A prompt that is too long without any history is sent nevertheless, because the count is an estimate. A model that
  finds the prompt too long fails with MODEL_CONTEXT_EXCEEDED.
- Each message is counted once per run. Without a budget no message is counted and no event is emitted. A caller may
  lower the budget, never raise it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from ag_ui.core import CustomEvent, DeveloperMessage, Message, SystemMessage, UserMessage
from msgspec import Struct, field

from agui_container.assistant.context_window.summary import Summaries, Summariser, summary_text
from agui_container.assistant.context_window.tokens import CountedMessage, MessageTokenCounter, total_tokens
from agui_container.ports import ContextWindowed, Emit, Model, Prompt, RunContext, TokenCounter
from agui_container.ports.notices import CONTEXT_COMPACTED

SNAPSHOT = "context.snapshot"
CUTS_PER_BUDGET = 4
"""History is dropped in steps of the budget divided by this number."""
MAX_LISTED_MESSAGES = 200
"""Maximum number of messages that a snapshot lists, newest last. More would not fit one WebSocket frame. The older
messages are counted by source and role."""


class Window(Protocol):
    """The messages of one run as the model gets them."""

    @property
    def messages(self) -> Sequence[Message]:
        """Messages for the next model call."""

    def add(self, messages: Sequence[Message]) -> None:
        """Append new messages of the run: the model's turn, or the results of tools."""

    def count_prompt(self, prompt: Prompt) -> None:
        """Count the system text and the tools of a prompt that has changed during the run."""

    async def fit(self) -> None:
        """Shorten the history to the budget before a model call. Emit an event if the history changed."""

    def snapshot(self) -> None:
        """Emit the usage of the window after a model call."""


class UnboundedWindow:
    """A window without a budget. No tokens are counted, no messages dropped, no events emitted."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages: Sequence[Message] = messages

    def add(self, messages: Sequence[Message]) -> None:
        self.messages = [*self.messages, *messages]

    def count_prompt(self, prompt: Prompt) -> None:
        """Do nothing."""

    async def fit(self) -> None:
        """Do nothing."""

    def snapshot(self) -> None:
        """Do nothing."""


class BoundedWindow:
    """A window of ``budget`` tokens. ``model_window`` only limits what is reported."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is a part of the window
        self,
        budget: int,
        counter: MessageTokenCounter,
        prompt: Prompt,
        emit: Emit,
        summarise: Summariser | None = None,
        model_window: int | None = None,
    ) -> None:
        self._budget = budget
        self._size = min(budget, model_window or budget)
        self._counter = counter
        self.count_prompt(prompt)
        entries = [counter.count_message(message) for message in prompt.messages]
        start = run_start(prompt.messages)
        self._history, self._run = entries[:start], entries[start:]
        self._kept_history: Sequence[CountedMessage] = self._history
        self._emit = emit
        self._summarise = summarise

    @property
    def messages(self) -> Sequence[Message]:
        return [entry.message for entry in (*self._kept_history, *self._run)]

    @property
    def tokens(self) -> int:
        return self._system + self._tools + total_tokens(self._kept_history) + total_tokens(self._run)

    def add(self, messages: Sequence[Message]) -> None:
        self._run.extend(self._counter.count_message(message) for message in messages)

    def count_prompt(self, prompt: Prompt) -> None:
        self._system = self._counter.count(prompt.system)
        self._tools = self._counter.count_tools(prompt.tools)

    async def fit(self) -> None:
        """Drop old turns if the prompt exceeds the budget. Emit CUSTOM ``context.compacted`` if the history changed."""
        before, messages_before = self.tokens, len(self._kept_history) + len(self._run)
        if before <= self._budget:
            return
        summary, kept_history = await self._compact(
            before - total_tokens(self._kept_history) + total_tokens(self._history) - self._budget
        )
        if kept_history == self._kept_history:
            return
        self._kept_history = kept_history
        value: dict[str, str | int] = {
            "strategy": "trim" if summary is None else "summarise",
            "messagesBefore": messages_before,
            "messagesAfter": len(self._kept_history) + len(self._run),
            "tokensBefore": before,
            "tokensAfter": self.tokens,
        }
        if summary is not None:
            value["summary"] = summary
        self._emit(CustomEvent(name=CONTEXT_COMPACTED, value=value))

    async def _compact(self, excess: int) -> tuple[str | None, Sequence[CountedMessage]]:
        reserve = self._summarise.reserve if self._summarise else 0
        at = find_cut(self._history, excess + reserve, max(1, self._budget // CUTS_PER_BUDGET))
        dropped, pinned = split_entries(self._history[:at])
        kept_history = [*pinned, *self._history[at:]]
        has_room = excess + reserve <= total_tokens(dropped)
        summary = await self._summarise(dropped) if self._summarise and has_room else None
        if summary is None:
            return None, kept_history
        return summary_text(summary), [*pinned, self._counter.count_message(summary), *self._history[at:]]

    def snapshot(self) -> None:
        used = self.tokens
        rows = [("history", entry) for entry in self._kept_history] + [("run", entry) for entry in self._run]
        older = older_messages(rows[:-MAX_LISTED_MESSAGES])
        value = {
            "contextSize": self._size,
            "systemTokens": self._system,
            "toolTokens": self._tools,
            "historyTokens": total_tokens(self._kept_history),
            "runTokens": total_tokens(self._run),
            "totalTokens": used,
            "remainingTokens": max(0, self._size - used),
            "historyMessages": len(self._kept_history),
            "runMessages": len(self._run),
            "messages": [_entry(source, entry) for source, entry in rows[-MAX_LISTED_MESSAGES:]],
            **({"olderMessages": older} if older else {}),
        }
        self._emit(CustomEvent(name=SNAPSHOT, value=value))


def _entry(source: str, entry: CountedMessage) -> dict[str, str | int]:
    return {"id": entry.message.id, "role": entry.message.role, "source": source, "tokens": entry.tokens}


def older_messages(rows: Iterable[tuple[str, CountedMessage]]) -> list[dict[str, str | int]]:
    totals: dict[tuple[str, str], list[int]] = {}
    for source, entry in rows:
        total = totals.setdefault((source, entry.message.role), [0, 0])
        total[0] += 1
        total[1] += entry.tokens
    return [
        {"role": role, "source": source, "count": count, "tokens": tokens}
        for (source, role), (count, tokens) in totals.items()
    ]


def counter_for(model: Model) -> MessageTokenCounter:
    return MessageTokenCounter(model.count, per_message=0) if isinstance(model, TokenCounter) else MessageTokenCounter()


def run_start(messages: Sequence[Message]) -> int:
    """Return the index of the last user message, where the current run begins; 0 if there is no user message."""
    return next((at for at in reversed(range(len(messages))) if isinstance(messages[at], UserMessage)), 0)


def find_cut(history: Sequence[CountedMessage], excess: int, step: int) -> int:
    """Return where the kept history begins: at the first user message after ``excess`` tokens, or at the end."""
    goal, dropped = -(-excess // step) * step, 0
    for at, entry in enumerate(history):
        if dropped >= goal and isinstance(entry.message, UserMessage):
            return at
        dropped += 0 if is_instruction(entry.message) else entry.tokens
    return len(history)


def split_entries(entries: Sequence[CountedMessage]) -> tuple[list[CountedMessage], list[CountedMessage]]:
    pinned = [entry for entry in entries if is_instruction(entry.message)]
    return [entry for entry in entries if not is_instruction(entry.message)], pinned


def is_instruction(message: Message) -> bool:
    """Return True for system and developer messages. Untrusted ones have been removed from the conversation before."""
    return isinstance(message, (SystemMessage, DeveloperMessage))


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
        tokens = min(filter(None, (self.tokens, ctx.limits.context_tokens)), default=0)
        if not tokens:
            return UnboundedWindow(prompt.messages)
        counter = counter_for(model)
        summariser = None
        if self.overflow is Overflow.SUMMARISE:
            summariser = Summariser(model, counter, tokens, self.summaries, ctx)
        model_window = model.context_window if isinstance(model, ContextWindowed) else None
        return BoundedWindow(tokens, counter, prompt, ctx.emit, summariser, model_window)
