"""The messages that an agent has begun with TEXT_MESSAGE_START, and not ended: a plain string goes on with the last.

Rule: only the agent's own words, role ``assistant`` and no ``subagentRunId``, not a tool's, and what was accepted
(docs/decisions/0031-a-string-goes-on-with-what-is-open.md).
"""

from ag_ui.core import BaseEvent, TextMessageEndEvent, TextMessageStartEvent


class Begun:
    """Those of one run."""

    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: dict[str, BaseEvent] = {}

    @property
    def last(self) -> str | None:
        """The id of the message that was begun last."""
        return next(reversed(self._starts), None)

    def start(self, event: TextMessageStartEvent) -> None:
        """One begins."""
        told = event.__dict__.get  # an agent may have made the event without all of its fields, which is told later
        key = told("message_id")
        if isinstance(key, str) and told("role") == "assistant" and told("subagent_run_id") is None:
            self._starts.setdefault(key, event)

    def drop(self, event: BaseEvent) -> None:
        """It did not begin, or is not the agent's. A second beginning that is refused does not end the first."""
        self._starts = {key: start for key, start in self._starts.items() if start is not event}

    def end(self, event: TextMessageEndEvent) -> None:
        """One has ended."""
        key = event.__dict__.get("message_id")
        if isinstance(key, str):
            self._starts.pop(key, None)
