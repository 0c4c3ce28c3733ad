"""The builtin tools as a model calls them."""

import pytest

from agui_container.ports import Tool, ToolContent, ToolError
from agui_container.tools.builtin import builtin_tools
from tests.contexts import run_context


def tool(name: str, now: float = 0.0) -> Tool:
    return next(tool for tool in builtin_tools(lambda: now) if tool.spec.name == name)


async def call(name: str, **arguments: object) -> ToolContent:
    return await tool(name, now=1_700_000_000.9).call(arguments, run_context())


async def test_calculate_gives_the_value_as_text() -> None:
    assert await call("calculate", expression="2*(3+4)") == "14"
    assert await call("calculate", expression="1/4") == "0.25"


@pytest.mark.parametrize("arguments", [{}, {"timezone": "UTC"}, {"timezone": None}, {"timezone": ""}])
async def test_current_time_is_utc_with_seconds(arguments: dict[str, object]) -> None:
    assert await call("current_time", **arguments) == "2023-11-14T22:13:20+00:00"


async def test_current_time_knows_time_zones() -> None:
    assert await call("current_time", timezone="Europe/Berlin") == "2023-11-14T23:13:20+01:00"


@pytest.mark.parametrize("name", ["Mars/Base", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 5000, "a\x00b"])
async def test_current_time_refuses_other_names(name: str) -> None:
    with pytest.raises(ToolError, match=r"^There is no time zone named '.{1,64}'\. Use an IANA name"):
        await call("current_time", timezone=name)
