"""The tools of the assistant in the gRPC tests, ``AGUI_TOOLS=tests.grpc.tools:tools``, and an agent with a name."""

from collections.abc import AsyncIterator

from ag_ui.core import AgentCapabilities, IdentityCapabilities, RunAgentInput

from agui_container.ports import Item
from agui_container.tools.function_tool import tool
from tests.behaviour import approval_tools


def preview_write(path: str, text: str) -> str:
    """Return the preview of a write."""
    return f"{path}: +{text}"


@tool(preview=preview_write)
async def write_file(path: str, text: str) -> str:
    """Write a file, as far as the model knows."""
    return f"wrote {len(text)} characters to {path}"


tools = [*approval_tools.tools, write_file]


class Poet:
    """An agent with a name: ``AGUI_AGENT=tests.grpc.tools:poet``."""

    def capabilities(self) -> AgentCapabilities:
        """Name the agent."""
        return AgentCapabilities(identity=IdentityCapabilities(name="poet"))

    async def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        """Answer."""
        yield "Roses are red."


poet = Poet()
