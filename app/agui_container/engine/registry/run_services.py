"""What an agent and its tools can reach of their run and of the process, from any thread.

Rule: everything happens on the event loop (``app/agui_container/runtime/loop_bridge.py``). One object for each run, in
place of a function for each thing, because a run that waits for its model is little else.
"""

from collections.abc import Awaitable

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.ports import Item
from agui_container.runtime.loop_bridge import LoopBridge


class RunServices:
    """What one run's context leads to."""

    __slots__ = ("_log", "_outlet", "_pipeline", "_registry")

    def __init__(self, pipeline: EventPipeline, log: EventLog, registry: RunRegistry) -> None:
        self._pipeline = pipeline
        self._log = log
        self._registry = registry
        self._outlet = LoopBridge(pipeline.submit_from_tool)

    def emit(self, item: Item) -> None:
        """Send an event or a string of assistant text."""
        self._outlet.emit(item)

    def value(self) -> object:
        """The shared state of the moment."""
        return self._outlet.call(self._pipeline.state.value)

    def background(self, work: Awaitable[object]) -> None:
        """Hand over work that outlives the run. The run's last state can be read until it is done."""
        self._outlet.call(lambda: self._begin(work))

    def _begin(self, work: Awaitable[object]) -> None:
        self._pipeline.keep_state()
        self._registry.background(work, self._pipeline.leave_state)

    async def yield_turn(self) -> None:
        """Wait until other runs had their turn. On the event loop only."""
        await self._registry.scheduler.yield_turn(self._log)

    def is_over(self) -> bool:
        """Whether the run has ended for its readers."""
        return self._log.has_ended
