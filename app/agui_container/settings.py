"""Every setting, in one frozen object, with its default and the check of its value.

Rule: a setting that cannot be used, or that would have no effect, stops the start with one clear line.
"""

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from agui_container.imports import advice_for, missing_module

ORIGIN = re.compile(r"https?://[^/*?#@\s]+")
HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
OWN_PORT = re.compile(r"^(http:.+):80$|^(https:.+):443$")
"""Origin with the default port of its scheme. Browsers leave that port out and write the rest in lower case."""


ASSISTANT_SETTINGS = (
    "model",
    "model_options",
    "models",
    "system_prompt",
    "max_steps",
    "delegate_depth",
    "trust_instructions",
    "context_tokens",
    "context_overflow",
    "context_files",
    "skills",
)
"""Settings that only the built-in assistant reads."""

UPSTREAM_SETTINGS = ("upstream_headers", "upstream_raw")
"""Settings that only agents behind a URL or an ASGI application read."""

TOOL_SETTINGS = ("tools", "tool_policy", "mcp_servers")
"""Settings of the tools that the built-in assistant and agents without tools of their own get."""


JSON_SETTINGS = ("model_options", "tool_policy", "mcp_servers", "auth_custom_claims", "caller_limits", "model_prices")
"""Settings that hold JSON: text in a variable, lists and tables in a file."""


ASSISTANT = "assistant"
"""Name of the built-in assistant in ``AGUI_AGENT`` and ``AGUI_AGENTS``."""

AGENT_ENTRY = re.compile(r"([A-Za-z0-9_.-]{1,64})=(assistant|[^=\s]+:\S+)")
"""Entry of ``AGUI_AGENTS``: a name that can stand in a path, and a reference."""


class SettingsError(Exception):
    """A setting has a value that cannot be used. The message is the one line to show."""


class MissingExtra(SettingsError):
    """A setting needs a package that is not installed here."""


class Scope(StrEnum):
    """Owner of threads and runs if no token names one: the session, or everybody."""

    SESSION = "session"
    NONE = "none"


class Auth(StrEnum):
    """Authentication of callers: none, or by JSON Web Tokens."""

    NONE = "none"
    JWT = "jwt"


DISCOVERY_URL = re.compile(
    r"https?://[^\s?#]+/\.well-known/(openid-configuration|oauth-authorization-server)(/[^\s?#]+)?"
)
"""Source: ``discoveryUrl`` of AgentCore's ``customJWTAuthorizer``."""

JWT_SETTINGS = ("discovery_url", "resource", "allowed_audience", "allowed_clients", "allowed_scopes", "custom_claims")
"""Settings of ``jwt``, without their prefix."""

RESTRICTIONS = JWT_SETTINGS[2:]
"""Settings of which at least one must restrict the accepted tokens."""


class LimitBy(StrEnum):
    """Name of an identity with limits of its own, if no token names a principal: none, or the session."""

    NONE = "none"
    SESSION = "session"


def make_pattern_validator(pattern: str, message: str) -> AfterValidator:
    """Return a validator for strings. ``message`` is for people, because few read regular expressions."""
    form = re.compile(pattern)

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


ModelName = Annotated[
    str,
    make_pattern_validator(
        r"offline|(bedrock|openai):.+", "must be offline, bedrock:MODEL_ID or openai:MODEL, such as openai:gpt-5"
    ),
]
Disconnect = Annotated[
    str,
    make_pattern_validator(
        r"cancel|continue|grace:\d+(\.\d+)?", "must be cancel, continue or grace:SECONDS, such as grace:30"
    ),
]
HeaderName = Annotated[
    str,
    AfterValidator(str.lower),
    make_pattern_validator(r"[a-z0-9!#$%&'*+.^_`|~-]+", "must be names of headers, such as authorization,x-tenant"),
]
ResourceUrl = Annotated[
    str,
    make_pattern_validator(r"(https?://[^\s?#\"]+)?", "must be a URL without a query, such as https://agent.example"),
]
JsonText = Annotated[
    str, BeforeValidator(lambda value: value if isinstance(value, str) else json.dumps(value, default=str))
]
"""JSON, as text or as the lists and tables of a file."""
Colour = Annotated[
    str,
    make_pattern_validator(
        r"#[0-9a-fA-F]{6}", "must be # and six hexadecimal digits (0 to 9, a to f), such as #4a5bd4"
    ),
]


Domain = Annotated[
    str,
    AfterValidator(str.lower),
    make_pattern_validator(
        r"(https?|wss?)://(\*\.)?[a-z0-9.-]+(:[0-9]+)?", "must be https://api.example or https://*.tiles.example"
    ),
]


Logo = Annotated[
    str,
    make_pattern_validator(r"(.+\.(?i:svg|png|jpe?g|webp))?", "must be a file of an image: .svg, .png, .jpg or .webp"),
]


def _parse_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('must be a JSON list of texts, such as ["What is new?"]') from None


Suggestions = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=500)], ...],
    Field(max_length=12),
    BeforeValidator(_parse_list),
]
"""Messages that the chat page offers in a new chat."""


class Settings(BaseModel):
    """All settings; docs/configuration.md describes them. Times are in seconds, sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "0.0.0.0"  # noqa: S104 - AgentCore's contract
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    agents: tuple[str, ...] = ()
    agent: Annotated[str, Field(validate_default=True)] = ASSISTANT
    model: ModelName = "offline"
    model_options: JsonText = "{}"
    models: tuple[str, ...] = ()
    openai_base_url: str = "https://api.openai.com/v1"
    openai_api_key: SecretStr = SecretStr("")
    system_prompt: str = ""
    max_steps: Annotated[int, Field(ge=1)] = 16
    delegate_depth: Annotated[int, Field(ge=0, le=8)] = 2
    tools: str = ""
    tool_policy: JsonText = "[]"
    mcp_servers: JsonText = "[]"
    trust_instructions: bool = False
    context_tokens: Annotated[int, Field(ge=0)] = 0
    context_overflow: Literal["trim", "summarise"] = "trim"
    context_files: tuple[str, ...] = ()
    skills: str = ""
    upstream_headers: tuple[HeaderName, ...] = ()
    upstream_raw: bool = False
    on_disconnect: Disconnect = "grace:30"
    on_busy: Literal["reject", "enqueue", "interrupt"] = "reject"
    scope: Scope = Scope.SESSION
    auth: Auth = Auth.NONE
    auth_discovery_url: str = ""
    auth_resource: ResourceUrl = ""
    auth_allowed_audience: tuple[str, ...] = ()
    auth_allowed_clients: tuple[str, ...] = ()
    auth_allowed_scopes: tuple[str, ...] = ()
    auth_custom_claims: JsonText = "[]"
    limit_by: LimitBy = LimitBy.NONE
    caller_limits: JsonText = "{}"
    error_status: Literal["http", "stream"] = "http"
    run_timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 3300.0
    run_tokens: Annotated[int, Field(ge=0)] = 0
    principal_tokens: Annotated[int, Field(ge=0)] = 0
    model_prices: JsonText = "{}"
    keepalive: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 15.0
    store: SecretStr = SecretStr("memory")
    bus: SecretStr = SecretStr("memory")
    files: str = ""
    max_body_bytes: Annotated[int, Field(ge=1_000, le=100_000_000)] = 10_000_000
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    grpc: bool = True
    grpc_shutdown: bool = False
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    metrics: bool = False
    console: bool = True
    console_title: Annotated[str, Field(min_length=1, max_length=80)] = "AG-UI Chat"
    console_accent: Colour = "#4a5bd4"
    console_greeting: Annotated[str, Field(max_length=200)] = ""
    console_logo: Logo = ""
    console_suggestions: Suggestions = ()
    console_client_id: str = ""
    app_domains: tuple[Domain, ...] = ()
    roboto: bool = True

    @field_validator(
        "cors_origins",
        "app_domains",
        "allowed_hosts",
        "auth_allowed_audience",
        "auth_allowed_clients",
        "auth_allowed_scopes",
        "context_files",
        "models",
        "agents",
        "upstream_headers",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        """Split a comma-separated list. A table becomes a list of ``NAME=VALUE``."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return tuple(f"{name}={entry}" for name, entry in value.items()) if isinstance(value, dict) else value

    @field_validator("agents")
    @classmethod
    def _check_agents(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        names = [entry.partition("=")[0] for entry in entries]
        for entry, name in zip(entries, names, strict=True):
            if not AGENT_ENTRY.fullmatch(entry):
                raise ValueError(f"'{entry}' is not NAME=module:attribute, NAME=URL or NAME=assistant")
            if names.count(name) > 1:
                raise ValueError(f"the name '{name}' is there twice")
        return entries

    @field_validator("agent")
    @classmethod
    def _choose_default(cls, agent: str, info: ValidationInfo) -> str:
        """Return the agent that answers without a name. Where the setting is left out, the first entry does."""
        names = [entry.partition("=")[0] for entry in info.data.get("agents", ())]
        return names[0] if names and agent == ASSISTANT and ASSISTANT not in names else agent

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        """Return origins as browsers write them. A ``*`` is refused: any web page could then drive the agent."""
        names = tuple(origin.lower() for origin in origins)
        for name in names:
            found = ORIGIN.match(name)
            if found and name.startswith("/", found.end()):
                raise ValueError(f"an origin has no path and no slash at its end; write {found[0]} instead of {name}")
            if found is None or found.end() < len(name):
                raise ValueError(f"{name} is not an origin such as https://example.com")
        return tuple(OWN_PORT.sub(r"\1\2", name) for name in names)

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Return host names as browsers write them. A ``*`` would let a web page reach the server by DNS rebinding."""
        names = tuple(host.lower() for host in hosts)
        for name in names:
            if not HOST_NAME.fullmatch(name):
                raise ValueError(f"{name} is not a host name such as agent.example, without a port")
        return names

    @property
    def agent_references(self) -> dict[str, str]:
        named = dict(entry.split("=", 1) for entry in self.agents)
        return named if self.agent in named else {self.agent: self.agent, **named}

    @property
    def disconnect_grace(self) -> float | None:
        """Seconds until an unread run is cancelled: 0 at once, None never."""
        if self.on_disconnect == "continue":
            return None
        return float(self.on_disconnect.partition(":")[2] or 0)


def check_extra(setting: str, extra: str) -> None:
    """Raise ``MissingExtra`` if a package of the extra is missing."""
    missing = missing_module(extra)
    if missing is not None:
        raise MissingExtra(f"{setting} needs the package {missing}. {advice_for(extra)}.")


def with_agent(settings: Settings, agent: str) -> Settings:
    """Return the settings for an agent that a caller names. Those of an assistant that it replaces have no effect."""
    named = settings.model_copy(update={"agent": agent})
    is_replaced = ASSISTANT in settings.agent_references.values() and ASSISTANT not in named.agent_references.values()
    return named.model_copy(update={name: default_of(name) for name in ASSISTANT_SETTINGS}) if is_replaced else named


def check_assistant_settings(settings: Settings, *, takes_tools: bool) -> None:
    """Raise ``SettingsError`` for a setting of the assistant that another agent does not read.

    ``takes_tools`` is True if the agent gets the tools of the settings. An ``Assistant`` made in Python has its own.
    """
    names = ASSISTANT_SETTINGS if takes_tools else (*ASSISTANT_SETTINGS, *TOOL_SETTINGS)
    check_effect(settings, names, "is for the built-in assistant, and AGUI_AGENT names another agent")


def check_upstream_settings(settings: Settings) -> None:
    check_effect(settings, UPSTREAM_SETTINGS, "is for agents behind a URL or an ASGI application, and there is none")


def check_effect(settings: Settings, names: Iterable[str], reason: str) -> None:
    for name in names:
        if is_set(settings, name):
            raise SettingsError(f"AGUI_{name.upper()} {reason}. Remove it.")


def is_set(settings: Settings, name: str) -> bool:
    return bool(getattr(settings, name) != default_of(name))


def check_auth(settings: Settings) -> None:
    """Raise ``SettingsError`` if a setting is missing, or would have no effect."""
    configured = {name for name in JWT_SETTINGS if is_set(settings, f"auth_{name}")}
    if settings.auth is Auth.NONE:
        for name in JWT_SETTINGS:
            if name in configured:
                raise SettingsError(f"AGUI_AUTH_{name.upper()} needs AGUI_AUTH=jwt, but AGUI_AUTH is none.")
        return
    if not DISCOVERY_URL.fullmatch(settings.auth_discovery_url):
        raise SettingsError(
            "AGUI_AUTH_DISCOVERY_URL must be a URL such as https://issuer.example/.well-known/openid-configuration."
        )
    if not configured & {*RESTRICTIONS}:
        names = ", ".join(f"AGUI_AUTH_{name.upper()}" for name in RESTRICTIONS)
        raise SettingsError(f"AGUI_AUTH=jwt needs one of {names}: tokens for other servers would be valid here.")


def default_of(name: str) -> object:
    return Settings.model_fields[name].default


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
