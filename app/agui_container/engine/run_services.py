"""The services of a run's context: events, state, background work and turns, for an agent and its tools.

Rule: calls may come from any thread and are executed on the event loop (``app/agui_container/threads.py``).
"""

from collections.abc import Awaitable

from agui_container.engine.registry import RunRegistry
from agui_container.ports import Item
from agui_container.run.event_log import EventLog
from agui_container.run.pipeline import EventPipeline
from agui_container.threads import LoopBridge


class RunServices:
    """Implements ``RunContext``'s functions. One object per run takes less memory than one closure per function."""

    __slots__ = ("_bridge", "_log", "_pipeline", "_registry")

    def __init__(self, pipeline: EventPipeline, log: EventLog, registry: RunRegistry) -> None:
        self._pipeline = pipeline
        self._log = log
        self._registry = registry
        self._bridge = LoopBridge(pipeline.submit_from_tool)

    def emit(self, item: Item) -> None:
        self._bridge.emit(item)

    def state(self) -> object:
        return self._bridge.call(self._pipeline.state.value)

    def background(self, work: Awaitable[object]) -> None:
        """Run work that may outlive the run. The run's last state can be read until the work is done."""
        self._bridge.call(lambda: self._start_background(work))

    def _start_background(self, work: Awaitable[object]) -> None:
        self._pipeline.acquire_state()
        self._registry.background(work, self._pipeline.release_state)

    async def yield_turn(self) -> None:
        await self._registry.scheduler.yield_turn(self._log)

    def has_ended(self) -> bool:
        return self._log.has_ended
