"""The request of an MCP App to its server, which a page passes on in ``forwardedProps`` of a run.

Source: ``@ag-ui/mcp-apps-middleware`` 0.1.1.
"""

from typing import Any

from ag_ui.core import RunAgentInput
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from agui_container.protocol.parser import read_forwarded_prop


class AppRequest(BaseModel):
    """The middleware names a server by a hash of its address, and by an id if it has one."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    method: str
    params: dict[str, Any] | None = None
    server_hash: str | None = None
    server_id: str | None = None

    @property
    def server(self) -> str:
        return self.server_id or self.server_hash or ""


_REQUEST = TypeAdapter(AppRequest)


def read_app_request(run_input: RunAgentInput) -> AppRequest | None:
    """Return None for the input of any other run. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    return read_forwarded_prop(run_input.forwarded_props, "__proxiedMCPRequest", _REQUEST)
