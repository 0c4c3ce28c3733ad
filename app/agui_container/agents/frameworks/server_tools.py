"""The server's tools in the form of each framework, under the tool policy and with approvals.

Rules:
- A tool of these calls ``ctx.call_tool`` with the framework's own id of the call. A call that needs an answer ends the
  run. The run with the answer runs it, and the framework reads the result in the history.
- The tools are those of the run that lists or calls them, so they are taken from ``CURRENT_RUN``.
- A framework is imported only by the function for it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agui_container.ports import current_run

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.tools import BaseTool
    from pydantic_ai.toolsets import AbstractToolset


def langchain_tools() -> "Sequence[BaseTool]":
    """Return the server's tools as LangChain tools, to bind to a model and for a ``ToolNode``. Call it in a node."""
    from agui_container.agents.frameworks.langchain_tools import LangChainServerTool  # noqa: PLC0415 - optional

    return [LangChainServerTool.of(tool.spec) for tool in current_run().tools.values()]


def langchain_middleware() -> "AgentMiddleware[Any, Any, Any]":
    """Return the client's and the server's tools as middleware for ``create_agent(model, tools, middleware=[...])``."""
    from agui_container.agents.frameworks.langchain_middleware import AguiMiddleware  # noqa: PLC0415 - optional

    return AguiMiddleware()


def pydantic_toolset() -> "AbstractToolset[Any]":
    """Return the server's tools as a toolset for ``Agent(toolsets=[...])`` of Pydantic AI."""
    from agui_container.agents.frameworks.pydantic_toolset import ServerToolset  # noqa: PLC0415 - optional

    return ServerToolset()


def strands_tools() -> object:
    """Return the server's tools as a hook for ``StrandsAgent(hooks=[...])``. They are registered before each run."""
    from agui_container.agents.frameworks.strands_tools import StrandsToolHook  # noqa: PLC0415 - optional

    return StrandsToolHook()
