"""The tools of the assistant in the gRPC tests: ``AGUI_TOOLS=tests.grpc.tools:tools``."""

from app.tools.decorator import tool
from tests.behaviour import desk


def shown(path: str, text: str) -> str:
    """The preview of a write."""
    return f"{path}: +{text}"


@tool(preview=shown)
async def write_file(path: str, text: str) -> str:
    """Write a file, as far as the model knows."""
    return f"wrote {len(text)} characters to {path}"


tools = [*desk.tools, write_file]
