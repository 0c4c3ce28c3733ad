"""The tools of the assistant in the gRPC tests: ``AGUI_TOOLS=tests.grpc.tools:tools``."""

from agui_container.tools.function_tool import tool
from tests.behaviour import approval_tools


def shown(path: str, text: str) -> str:
    """The preview of a write."""
    return f"{path}: +{text}"


@tool(preview=shown)
async def write_file(path: str, text: str) -> str:
    """Write a file, as far as the model knows."""
    return f"wrote {len(text)} characters to {path}"


tools = [*approval_tools.tools, write_file]
