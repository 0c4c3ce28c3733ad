"""The server's tools for one run: the fixed ones, and what each source has now.

Rules: sources are asked side by side, and one that fails costs the run only its own tools: the log and the client
(CUSTOM ``tools.unavailable``) are told. The first tool of a name keeps it, fixed ones before those of sources.
"""

import asyncio
from collections.abc import Sequence

from ag_ui.core import CustomEvent
from msgspec import Struct

from agui_container.agents.assistant.toolbox import is_failure
from agui_container.ports import RunContext, Tool, ToolError, ToolSource

UNAVAILABLE = "tools.unavailable"
FAILED = "Its tools could not be listed."


class SourceFailure(Struct, frozen=True):
    """Tools that a run has to do without. ``down``: because the source did not give them."""

    source: str
    message: str
    down: bool = True

    @property
    def event(self) -> CustomEvent:
        """What the client is told."""
        return CustomEvent(name=UNAVAILABLE, value={"source": self.source, "message": self.message})


async def gather_tools(
    tools: Sequence[Tool], sources: Sequence[ToolSource], ctx: RunContext
) -> tuple[Sequence[Tool], Sequence[SourceFailure]]:
    """The tools of a run, and what is missing."""
    if not sources:
        return tools, ()
    async with asyncio.TaskGroup() as group:
        asked = [(source, group.create_task(_list_tools(source, ctx))) for source in sources]
    found: dict[str, Tool] = {}
    for tool in tools:
        found.setdefault(tool.spec.name, tool)
    source_failures = []
    for source, task in asked:
        answer = task.result()
        source_failure = answer if isinstance(answer, SourceFailure) else _add_tools(found, source, answer)
        if source_failure is not None:
            ctx.logger.warning("source=<%s> | tools are unavailable: %s", source_failure.source, source_failure.message)
            source_failures.append(source_failure)
    return list(found.values()), source_failures


async def _list_tools(source: ToolSource, ctx: RunContext) -> Sequence[Tool] | SourceFailure:
    try:
        return await source.tools(ctx)
    except ToolError as error:
        return SourceFailure(source.name, str(error))
    except BaseException as error:
        if not is_failure(error):
            raise
        ctx.logger.exception("source=<%s> | its tools could not be listed", source.name)
        return SourceFailure(source.name, FAILED)


def _add_tools(found: dict[str, Tool], source: ToolSource, tools: Sequence[Tool]) -> SourceFailure | None:
    """Add the source's tools to those that were found; what was left out, because the names are taken."""
    named = [(tool.spec.name, tool) for tool in tools]
    taken = sorted(name for name, _ in named if name in found)
    for name, tool in named:
        found.setdefault(name, tool)
    if not taken:
        return None
    return SourceFailure(
        source.name, f"Left out, because other tools have these names: {', '.join(taken)}.", down=False
    )
