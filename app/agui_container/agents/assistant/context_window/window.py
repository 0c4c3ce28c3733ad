"""What of a conversation a model is sent when there is a budget of tokens, and what the client is told about it.

Rules: the system text, the tools, the current run (the last user message and all behind it) and trusted instructions
always stay. Of the history before it the oldest turns go first, each as a whole: a turn is a user message and what
followed it, so a call never loses its results nor an answer its reasoning, and what is kept begins with a user.
What goes is rounded up to a quarter of the budget, so the cut stays where it is for many model calls and runs: a
provider's cache of the prompt holds, and a summary serves again. If what must stay is too much by itself, it is sent
all the same: the count is an estimate, and a model that finds it too long says MODEL_CONTEXT_EXCEEDED itself.

Every message is counted once per run, and none where there is no budget.
"""

from collections.abc import Sequence
from typing import Protocol

from ag_ui.core import CustomEvent, DeveloperMessage, Message, SystemMessage, UserMessage

from agui_container.agents.assistant.context_window.tokens import CountedMessage, MessageTokenCounter, total_tokens
from agui_container.ports import Emit, Prompt

COMPACTED = "context.compacted"
SNAPSHOT = "context.snapshot"
STEPS = 4
"""The history goes in steps of this part of the budget."""
LISTED = 200
"""Messages that a snapshot lists, the newest ones; more would be too much for one frame of a socket."""


class SummaryMaker(Protocol):
    """Makes one message of those that go."""

    @property
    def reserve(self) -> int:
        """The tokens that the message has at most."""

    async def __call__(self, entries: Sequence[CountedMessage]) -> Message | None:
        """The message, or None where there is none to be had."""


class Window(Protocol):
    """The messages of one run, as its model gets them."""

    @property
    def messages(self) -> Sequence[Message]:
        """What the next model call is sent."""

    def add(self, messages: Sequence[Message]) -> None:
        """What the run has brought: the model's turn, the results of tools."""

    async def fit(self) -> None:
        """Make the messages fit, before a model call, and tell the client if that changed anything."""

    def snapshot(self) -> None:
        """Tell the client how full the window is, after a model call."""


class UnboundedWindow:
    """A window without a budget: nothing is counted, nothing goes, and nobody is told."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages: Sequence[Message] = messages

    def add(self, messages: Sequence[Message]) -> None:
        """All of it."""
        self.messages = [*self.messages, *messages]

    async def fit(self) -> None:
        """It does."""

    def snapshot(self) -> None:
        """There is nothing to tell."""


class BoundedWindow:
    """A window of ``budget`` tokens.

    Args:
        prompt: system text and tools, which stay, and the messages that the run begins with, calls and results paired.
        emit: takes what the client is told.
        summarise: makes the message that stands for what goes; None: nothing does.
    """

    def __init__(
        self,
        budget: int,
        counter: MessageTokenCounter,
        prompt: Prompt,
        emit: Emit,
        summarise: SummaryMaker | None = None,
    ) -> None:
        self._budget = budget
        self._counter = counter
        self._system = counter.count(prompt.system)
        self._tools = counter.count_tools(prompt.tools)
        entries = [counter.count_message(message) for message in prompt.messages]
        start = run_start(prompt.messages)
        self._history, self._run = entries[:start], entries[start:]
        self._kept: Sequence[CountedMessage] = self._history
        self._emit = emit
        self._summarise = summarise

    @property
    def messages(self) -> Sequence[Message]:
        """The history that is kept, and the run."""
        return [entry.message for entry in (*self._kept, *self._run)]

    @property
    def tokens(self) -> int:
        """What the model is sent, in tokens."""
        return self._system + self._tools + total_tokens(self._kept) + total_tokens(self._run)

    def add(self, messages: Sequence[Message]) -> None:
        """Count what the run has brought."""
        self._run.extend(self._counter.count_message(message) for message in messages)

    async def fit(self) -> None:
        """Let old turns go if there are too many; CUSTOM ``context.compacted`` if that changed anything."""
        before, messages_before = self.tokens, len(self._kept) + len(self._run)
        if before <= self._budget:
            return
        strategy, kept = await self._compact(
            before - total_tokens(self._kept) + total_tokens(self._history) - self._budget
        )
        if kept == self._kept:
            return
        self._kept = kept
        value = {
            "strategy": strategy,
            "messagesBefore": messages_before,
            "messagesAfter": len(self._kept) + len(self._run),
            "tokensBefore": before,
            "tokensAfter": self.tokens,
        }
        self._emit(CustomEvent(name=COMPACTED, value=value))

    async def _compact(self, excess: int) -> tuple[str, Sequence[CountedMessage]]:
        """The history without ``excess`` tokens and how that was done, from the whole history again."""
        reserve = self._summarise.reserve if self._summarise else 0
        at = find_cut(self._history, excess + reserve, max(1, self._budget // STEPS))
        gone, pinned = split_entries(self._history[:at])
        kept = [*pinned, *self._history[at:]]
        room = excess + reserve <= total_tokens(gone)
        summary = await self._summarise(gone) if self._summarise and room else None
        if summary is None:
            return "trim", kept
        return "summarise", [*pinned, self._counter.count_message(summary), *self._history[at:]]

    def snapshot(self) -> None:
        """CUSTOM ``context.snapshot``: what the window holds by now, the model's last turn included."""
        used = self.tokens
        rows = [("history", entry) for entry in self._kept] + [("run", entry) for entry in self._run]
        value = {
            "contextSize": self._budget,
            "systemTokens": self._system,
            "toolTokens": self._tools,
            "historyTokens": total_tokens(self._kept),
            "runTokens": total_tokens(self._run),
            "totalTokens": used,
            "remainingTokens": max(0, self._budget - used),
            "historyMessages": len(self._kept),
            "runMessages": len(self._run),
            "messages": [_entry(source, entry) for source, entry in rows[-LISTED:]],
        }
        self._emit(CustomEvent(name=SNAPSHOT, value=value))


def _entry(source: str, entry: CountedMessage) -> dict[str, str | int]:
    return {"id": entry.message.id, "role": entry.message.role, "source": source, "tokens": entry.tokens}


def run_start(messages: Sequence[Message]) -> int:
    """Where the current run begins: at the last user message, or at the first message where no user has spoken."""
    return next((at for at in reversed(range(len(messages))) if isinstance(messages[at], UserMessage)), 0)


def find_cut(history: Sequence[CountedMessage], excess: int, step: int) -> int:
    """Where the history that is kept begins: at a user message, or behind the end.

    So many tokens go as there are too many, rounded up to ``step``.
    """
    goal, gone = -(-excess // step) * step, 0
    for at, entry in enumerate(history):
        if gone >= goal and isinstance(entry.message, UserMessage):
            return at
        gone += 0 if is_instruction(entry.message) else entry.tokens
    return len(history)


def split_entries(entries: Sequence[CountedMessage]) -> tuple[list[CountedMessage], list[CountedMessage]]:
    """What may go, and the instructions among it, which stay."""
    pinned = [entry for entry in entries if is_instruction(entry.message)]
    return [entry for entry in entries if not is_instruction(entry.message)], pinned


def is_instruction(message: Message) -> bool:
    """Whether a message gives orders. Those that a conversation still has are trusted."""
    return isinstance(message, (SystemMessage, DeveloperMessage))
