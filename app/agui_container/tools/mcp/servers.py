"""Configuration of MCP servers: ``AGUI_MCP_SERVERS`` as frozen models.

Rule: an invalid value stops the server at its start with one sentence that names the field. The sentence never contains
the value, because headers and environment variables hold secrets.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    HttpUrl,
    Tag,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")

HTTP: Final = "http"
STDIO: Final = "stdio"


class McpConfigError(ValueError):
    """The configuration of MCP servers is invalid. The text is for the operator, at the start of the server."""


def _check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        words = "A name has 1 to 32 letters (A to Z), digits, _ or -, such as my_server"
        raise PydanticCustomError("name", words)  # a ValueError's message would begin with "Value error"
    return name


class _Server(BaseModel):
    """Common fields of both kinds of server.

    Attributes:
        timeout: seconds without a message after which a call fails; a progress notification restarts the time.
        connect_timeout: seconds for starting and connecting, and for listing the tools.
        handshake: ``newest`` offers the newest protocol version first; ``initialize`` is for servers whose tools ask
            people in the middle of a call (``ctx.elicit``), which no version since 2026-07-28 allows.
        instructions: false keeps the server's description of its tools out of the system text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_check_name)]
    timeout: Seconds = 60.0
    connect_timeout: Seconds = 30.0
    tool_prefix: str | None = None
    handshake: Literal["newest", "initialize"] = "newest"
    instructions: bool = True

    @property
    def prefix(self) -> str:
        return f"{self.name}_" if self.tool_prefix is None else self.tool_prefix


class IdentityToken(BaseModel):
    """A token that AgentCore Identity gives for the caller of a run. It is sent in ``Authorization``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Annotated[str, Field(min_length=1)]
    scopes: tuple[str, ...] = ()
    flow: Literal["ON_BEHALF_OF_TOKEN_EXCHANGE", "USER_FEDERATION", "M2M"] = "ON_BEHALF_OF_TOKEN_EXCHANGE"
    audiences: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class HttpServer(_Server):
    """A server with the streamable HTTP transport. ``headers_from`` names a function that makes headers for a run."""

    url: HttpUrl
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    headers_from: str | None = None
    identity: IdentityToken | None = None


class StdioServer(_Server):
    """A server that runs as a child process, with its standard input and output as the transport.

    The process inherits only PATH, HOME and a few similar variables. ``env`` is added to them.
    """

    command: Annotated[str, Field(min_length=1)]
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict, repr=False)


def _kind(value: object) -> Literal["http", "stdio"] | None:
    if not isinstance(value, dict):
        return None
    return HTTP if "url" in value else STDIO if "command" in value else None


Server = HttpServer | StdioServer

_SERVERS: TypeAdapter[tuple[Server, ...]] = TypeAdapter(
    tuple[
        Annotated[
            Annotated[HttpServer, Tag(HTTP)] | Annotated[StdioServer, Tag(STDIO)],
            Discriminator(
                _kind,
                custom_error_type="server",
                custom_error_message="A server is an object with a name, and a url or a command",
            ),
        ],
        ...,
    ]
)


def parse_servers(text: str) -> tuple[Server, ...]:
    """Parse a JSON list of servers with different names. The ``McpConfigError`` names the wrong field."""
    try:
        servers = _SERVERS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"] if part not in {HTTP, STDIO}) or "the list"
        raise McpConfigError(f"{field}: {first['msg']}.") from None
    names = [server.name for server in servers]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise McpConfigError(f"{index}.name: There are two servers named '{name}'.")
    return servers
