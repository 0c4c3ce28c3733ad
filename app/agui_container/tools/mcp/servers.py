"""Which MCP servers there are: ``AGUI_MCP_SERVERS`` as frozen models.

Rule: a bad value stops the start with one sentence that says where it is and never what it is: headers and variables
hold secrets.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, HttpUrl, Tag, TypeAdapter, ValidationError

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

HTTP: Final = "http"
STDIO: Final = "stdio"


class McpConfigError(ValueError):
    """MCP servers cannot be used as configured. The text is for the operator, at the start."""


class _Server(BaseModel):
    """What both kinds of server have.

    Attributes:
        name: what logs, clients and, as a prefix, the model call the server.
        timeout: seconds of silence after which a call is given up; progress counts as a sign of life.
        connect_timeout: seconds for starting, connecting and listing.
        tool_prefix: what stands before the server's names of its tools; the server's name and ``_`` unless it is given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
    timeout: Seconds = 60.0
    connect_timeout: Seconds = 30.0
    tool_prefix: str | None = None

    @property
    def prefix(self) -> str:
        """What stands before the server's own names of its tools."""
        return f"{self.name}_" if self.tool_prefix is None else self.tool_prefix


class HttpServer(_Server):
    """A server that is reached over streamable HTTP. ``headers`` are sent with every request."""

    url: HttpUrl
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)


class StdioServer(_Server):
    """A server that is started as a process of ours, and spoken to over its standard input and output.

    ``env`` is added to PATH, HOME and the like; no other variable of ours reaches it.
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
    """The servers in a JSON list.

    Raises:
        McpConfigError: naming the place.
    """
    try:
        servers = _SERVERS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part not in {HTTP, STDIO}) or "the list"
        raise McpConfigError(f"{where}: {first['msg']}.") from None
    names = [server.name for server in servers]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise McpConfigError(f"{at}.name: There are two servers named '{name}'.")
    return servers
