"""The server's tools for one run: the fixed tools, then the tools that each source lists now.

Rules: sources are queried concurrently. A source that fails costs the run only its own tools. The failure is logged
and reported to the client as CUSTOM ``tools.unavailable``. If two tools have the same name, the first one is used, and
fixed tools come before those of sources.
"""

import asyncio
from collections.abc import Sequence

from ag_ui.core import CustomEvent
from msgspec import Struct

from agui_container.agents.tool_calls.toolbox import is_failure
from agui_container.ports import RunContext, Tool, ToolError, ToolSource
from agui_container.ports.notices import TOOLS_UNAVAILABLE
from agui_container.runtime.log_values import format_fields

FAILED = "Its tools could not be listed."


class SourceFailure(Struct, frozen=True):
    """Tools of a source that a run cannot use.

    Attributes:
        source: name of the source.
        message: the reason, for the client.
        is_down: True if the source could not list its tools, False if other tools have the same names.
    """

    source: str
    message: str
    is_down: bool = True

    @property
    def event(self) -> CustomEvent:
        """Event that reports the failure to the client."""
        return CustomEvent(name=TOOLS_UNAVAILABLE, value={"source": self.source, "message": self.message})


async def gather_tools(
    tools: Sequence[Tool], sources: Sequence[ToolSource], ctx: RunContext
) -> tuple[Sequence[Tool], Sequence[SourceFailure]]:
    """Return the tools of a run and the failures of its sources."""
    if not sources:
        return tools, ()
    async with asyncio.TaskGroup() as group:
        tasks = [(source, group.create_task(_list_tools(source, ctx))) for source in sources]
    by_name: dict[str, Tool] = {}
    for tool in tools:
        by_name.setdefault(tool.spec.name, tool)
    failures = []
    for source, task in tasks:
        listed = task.result()
        failure = listed if isinstance(listed, SourceFailure) else _add_tools(by_name, source, listed)
        if failure is not None:
            ctx.logger.warning(
                "tools unavailable %s", format_fields({"source": failure.source, "error": failure.message})
            )
            failures.append(failure)
    return list(by_name.values()), failures


async def _list_tools(source: ToolSource, ctx: RunContext) -> Sequence[Tool] | SourceFailure:
    try:
        return await source.tools(ctx)
    except ToolError as error:
        return SourceFailure(source.name, str(error))
    except BaseException as error:
        if not is_failure(error):
            raise
        ctx.logger.exception("listing tools failed %s", format_fields({"source": source.name}))
        return SourceFailure(source.name, FAILED)


def _add_tools(by_name: dict[str, Tool], source: ToolSource, tools: Sequence[Tool]) -> SourceFailure | None:
    """Add the source's tools to ``by_name``. Return a failure that lists tools with duplicate names, if any."""
    named = [(tool.spec.name, tool) for tool in tools]
    duplicates = sorted(name for name, _ in named if name in by_name)
    for name, tool in named:
        by_name.setdefault(name, tool)
    if not duplicates:
        return None
    return SourceFailure(
        source.name, f"Left out, because other tools have these names: {', '.join(duplicates)}.", is_down=False
    )
