"""The composition root: settings in, application out. The only module that knows every name.

Rule: building the application reads the files that settings name and does no other I/O, makes no id and reads no clock;
that begins with the application's lifespan (AgentCore restores snapshots: docs/behind-agentcore.md).
"""

import logging
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from ag_ui.core import (
    AgentCapabilities,
    ExecutionCapabilities,
    IdentityCapabilities,
    TransportCapabilities,
)
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from agui_container import __version__
from agui_container.agent_factory import AgentFactory, app_requests
from agui_container.agents.agentcore_sdk import sdk_tasks_of
from agui_container.agents.as_agent import capabilities_of, only_answers, thread_cleanup_of
from agui_container.agents.by_name import namer_of
from agui_container.auth_factory import build_authentication, build_sign_in
from agui_container.engine.engine import CLOSE_SECONDS, Engine, close_all
from agui_container.engine.limits import IdentityLimits, OnDisconnect, Policy
from agui_container.imports import missing_module
from agui_container.log_values import format_fields, mask_passwords
from agui_container.ports import Agent, Clock
from agui_container.ports.agent import SystemClock
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.files import FileStore
from agui_container.ports.store import Store, store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.token_usage import ModelPrice
from agui_container.protocols.grpc.handover import HTTP2, Connect, Handover
from agui_container.protocols.grpc.options import GrpcOptions, grpc_fault
from agui_container.protocols.kontekst import registration as kontekst
from agui_container.protocols.roz import registration as roz
from agui_container.replicas.buses import open_bus
from agui_container.run.cluster import Cluster
from agui_container.run.policy import OnBusy
from agui_container.settings import (
    Auth,
    LimitBy,
    Scope,
    Settings,
    SettingsError,
    check_extra,
    with_agent,
)
from agui_container.settings_sources import load_settings
from agui_container.stores import open_store
from agui_container.stores.files import BUCKET, open_files
from agui_container.web import files, invocations, rest, websocket
from agui_container.web.application import (
    Application,
    ContractPaths,
    FastAPI,
    contract_endpoints,
    description_routes,
)
from agui_container.web.authentication import CallerAuthentication
from agui_container.web.browser_policy import BrowserPolicy
from agui_container.web.caller_middleware import CallerMiddleware
from agui_container.web.console import routes as console
from agui_container.web.console.assets import ConsoleOptions
from agui_container.web.error_responses import on_error
from agui_container.web.registration import Closers, GrpcRegistration, HttpRegistration
from agui_container.web.rest import Render, is_poll
from agui_core.commands import COMMANDS

T = TypeVar("T")

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 2.0
"""Seconds that open runs have to finish after SIGTERM. AgentCore promises no grace."""

REFUSED_IN_STREAM = 200

URL_EXTRAS = {
    "agentcore-memory": "aws",
    "postgresql": "postgresql",
    "redis": "redis",
    "rediss": "redis",
    "sqlite": "sqlite",
}
"""Extras by the schemes of the URLs of stores and buses."""


def grpc_protocols(settings: Settings) -> list[GrpcRegistration]:
    return [roz.register(settings), kontekst.register(settings)] if settings.grpc else []


def http_protocols(settings: Settings) -> list[HttpRegistration]:
    if not settings.roboto:
        return []
    from agui_container.protocols.roboto import routes as roboto  # noqa: PLC0415 - the image does not serve it

    return [roboto.register(settings)]


def create_app(agent: object = None, settings: Settings | None = None) -> FastAPI:
    """Make an application that serves an agent, to run with any ASGI server or to mount under a prefix.

    The engine opens with the application's lifespan. Starlette does not run the lifespan of a mounted application, so
    there the engine opens at the first request. To end open runs in order at shutdown as well, hand the lifespan to the
    outer application: ``FastAPI(lifespan=app.router.lifespan_context)``.

    Args:
        agent: an agent in any accepted form, or ``"module:attribute"``. None serves the agent of the settings.
        settings: None reads the ``AGUI_*`` environment variables and ``agui.toml`` of the working folder.

    Raises:
        SettingsError: a setting cannot be used.
        AgentLoadError, ToolLoadError: the agent or the tools cannot be loaded.
    """
    settings = with_available_grpc(settings or load_settings())
    if isinstance(agent, str):
        settings, agent = with_agent(settings, agent), None
    if agent is not None:
        settings = settings.model_copy(update={"agent": agent_name(agent)})
    return build_app(settings, build_service(settings, agent))


def with_available_grpc(settings: Settings) -> Settings:
    if not settings.grpc:
        return settings
    if "grpc" in settings.model_fields_set:
        check_extra("AGUI_GRPC", "grpc")
    if missing_module("grpc") is None:
        reason = grpc_fault()
        if reason is None:
            return settings
        logger.warning("gRPC is off %s", format_fields({"reason": reason}))
    return settings.model_copy(update={"grpc": False})


def agent_name(agent: object) -> str:
    name = getattr(agent, "__name__", None)
    return name if isinstance(name, str) else type(agent).__name__


def build_app(settings: Settings, service: Engine | None = None) -> FastAPI:
    """Build the application. Without ``service`` its engine is built here. Raises as ``create_app``."""
    service = service or build_service(settings)
    closers: Closers = []
    authentication = build_authentication(settings, service.clock)
    http2 = hand_over(service, settings, authentication) if settings.grpc else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, object]]:
        await service.open()
        yield {HTTP2: http2} if http2 is not None else {}
        await service.drain(0)
        await close_all([*closers, *([http2.aclose] if http2 is not None else ())], CLOSE_SECONDS)
        await service.aclose()

    routes = build_routes(settings, service, authentication, closers)
    app = Application(
        title="AG-UI agent",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,  # the redirect would name the host that the caller has written
        routes=routes,
        telemetry={"exclude": is_poll},
    )
    app.cors_origins = settings.cors_origins
    app.state.service = service
    for kind in (AppError, HTTPException, Exception):
        app.add_exception_handler(kind, on_error)
    app.add_middleware(ContractPaths, endpoints=contract_endpoints(routes))
    admit_callers(app, settings, service, authentication)
    return app


def build_routes(
    settings: Settings,
    service: Engine,
    authentication: CallerAuthentication,
    closers: Closers,
) -> list[BaseRoute]:
    """All routes are plain: FastAPI's parsing and validation of AG-UI's bodies would only cost time."""
    by_agent = bool(settings.agents)
    return [
        *invocations.routes(service, max_body=settings.max_body_bytes, keepalive=settings.keepalive, by_agent=by_agent),
        *rest.routes(service),
        *rest.thread_routes(service, max_body=settings.max_body_bytes),
        *files.routes(service, max_body=settings.max_body_bytes),
        *authentication.routes(),
        *websocket.routes(service, authentication, max_body=settings.max_body_bytes, by_agent=by_agent),
        *description_routes(page=settings.console),
        *(rest.metrics_routes(load_exposition()) if settings.metrics else ()),
        *(console.routes(build_console_options(settings)) if settings.console else ()),
        *(route for protocol in http_protocols(settings) for route in protocol.routes(service, closers)),
    ]


def build_console_options(settings: Settings) -> ConsoleOptions:
    logo = Path(settings.console_logo) if settings.console_logo else None
    if logo is not None and not logo.is_file():
        raise SettingsError(f"AGUI_CONSOLE_LOGO={settings.console_logo}: there is no such file.")
    sign_in = build_sign_in(settings)
    return ConsoleOptions(
        settings.console_title,
        settings.console_accent,
        settings.console_greeting,
        logo,
        settings.app_domains,
        sign_in,
    )


def load_exposition() -> Render:
    check_extra("AGUI_METRICS", "metrics")
    from agui_container.telemetry.prometheus import expose  # noqa: PLC0415 - only if ``AGUI_METRICS`` is on

    return expose().render


def admit_callers(app: FastAPI, settings: Settings, service: Engine, authentication: CallerAuthentication) -> None:
    app.add_middleware(
        CallerMiddleware,
        browsers=BrowserPolicy(settings.cors_origins, (settings.host, *settings.allowed_hosts)),
        authentication=authentication,
        by_session=settings.scope is Scope.SESSION,
        limits_by_session=settings.limit_by is LimitBy.SESSION,
        refused_status=REFUSED_IN_STREAM if settings.error_status == "stream" else None,
        ensure_open=partial(ensure_open, service),
        error_forms={protocol.prefix: protocol.error_form for protocol in http_protocols(settings)},
    )


async def ensure_open(service: Engine) -> None:
    """Open the engine unless it is open. Raises ``AppError`` STORE_UNAVAILABLE."""
    if service.health.ready:
        return
    try:
        with store_errors_as_app_errors():
            await service.open()
    except BusUnavailable as error:
        logger.warning("bus unavailable %s", format_fields({"error": error}))
        raise AppError(ErrorCode.STORE_UNAVAILABLE, "The bus of this server cannot be reached right now.") from error


def hand_over(service: Engine, settings: Settings, authentication: CallerAuthentication) -> Handover:
    """The first connection imports gRPC and its protocols."""
    protocols = grpc_protocols(settings)
    options = GrpcOptions(
        max_bytes=settings.max_body_bytes,
        by_session=settings.scope is Scope.SESSION,
        origins=settings.cors_origins,
        authentication=authentication,
        limits_by_session=settings.limit_by is LimitBy.SESSION,
    )

    def load() -> Connect:
        from agui_container.protocols.grpc.server import build_server  # noqa: PLC0415 - see above

        return build_server(service, options, [protocol.load() for protocol in protocols])

    return Handover(load)


def build_service(settings: Settings, agent_object: object = None) -> Engine:
    """``agent_object`` answers by default, or else what ``settings.agent`` names."""
    closers: Closers = []
    clock = SystemClock()
    warn_of_limits_without_effect(settings)
    cluster = build_cluster(settings, clock)
    file_store = build_files(settings, cluster.store)
    if file_store is not None:
        closers.append(file_store.aclose)
    factory = AgentFactory(settings, cluster.store, closers)
    served = factory.build(agent_object)
    agent = served.made
    return Engine(
        served.running,
        Policy(
            on_busy=OnBusy(settings.on_busy),
            on_disconnect=OnDisconnect(settings.disconnect_grace),
            run_timeout=settings.run_timeout,
            identity_limits=read_identity_limits(settings.caller_limits),
        ),
        cluster,
        tools={tool.spec.name: tool for tool in factory.tools},
        capabilities=build_capabilities(agent, settings, has_files=file_store is not None),
        new_id=new_id,
        only_answers=only_answers(agent),
        thread_cleanup=thread_cleanup_of(agent),
        closers=closers,
        name_of=namer_of(agent, mask_passwords(settings.agent)),
        files=file_store,
        has_other_work=sdk_tasks_of(modules_of(settings, agent_object)),
        answer_app=app_requests(settings, cluster.store, factory.sources),
    )


def modules_of(settings: Settings, agent_object: object) -> set[str]:
    references = [
        reference.partition(":")[0].strip() for reference in (*settings.agent_references.values(), settings.tools)
    ]
    return {*references, getattr(agent_object, "__module__", "")}


def read_identity_limits(text: str) -> IdentityLimits:
    """Parse ``AGUI_CALLER_LIMITS``. Raises ``SettingsError``, naming the limit."""
    try:
        return msgspec.json.decode(text, type=IdentityLimits)
    except msgspec.DecodeError as error:
        raise SettingsError(f"AGUI_CALLER_LIMITS={text!r}: {error}.") from None


def read_prices(text: str) -> object:
    """Parse ``AGUI_MODEL_PRICES`` and return it as plain JSON. Raises ``SettingsError``, naming the model."""
    try:
        return msgspec.to_builtins(msgspec.json.decode(text, type=dict[str, ModelPrice]))
    except msgspec.DecodeError as error:
        raise SettingsError(f"AGUI_MODEL_PRICES={text!r}: {error}.") from None


def build_cluster(settings: Settings, clock: Clock) -> Cluster:
    store_url, bus_url = settings.store.get_secret_value(), settings.bus.get_secret_value()
    return Cluster(
        open_url("AGUI_STORE", store_url, lambda url: open_store(url, clock.time)),
        open_url("AGUI_BUS", bus_url, open_bus),
        clock,
        new_id=new_id,
        day_tokens=0 if settings.auth is Auth.NONE else settings.principal_tokens,
    )


def warn_of_limits_without_effect(settings: Settings) -> None:
    if settings.auth is not Auth.NONE:
        return
    if settings.principal_tokens:
        logger.warning("AGUI_PRINCIPAL_TOKENS has no effect reason='AGUI_AUTH is none, so callers have no principal'")
    if settings.caller_limits != "{}" and settings.limit_by is LimitBy.NONE:
        logger.warning("AGUI_CALLER_LIMITS has no effect reason='AGUI_AUTH and AGUI_LIMIT_BY are none'")


def build_files(settings: Settings, store: Store) -> FileStore | None:
    store_url = settings.store.get_secret_value()
    if settings.files.startswith(BUCKET):
        check_extra("AGUI_FILES", "aws")
    try:
        return open_files(settings.files, store_url, store)
    except ValueError as error:
        raise SettingsError(f"AGUI_FILES={settings.files}: {error}.") from None


def open_url(variable: str, url: str, open_it: Callable[[str], T]) -> T:
    """Open a store or bus. The ``SettingsError`` names the variable, not the URL, which may hold a password."""
    extra = URL_EXTRAS.get(url.partition(":")[0])
    if extra is not None:
        check_extra(variable, extra)
    try:
        return open_it(url)
    except ValueError as error:
        raise SettingsError(f"{variable} {error}.") from None


def new_id() -> str:
    return str(uuid.uuid4())


def build_capabilities(agent: Agent, settings: Settings, *, has_files: bool = False) -> AgentCapabilities:
    own = capabilities_of(agent) or AgentCapabilities()
    execution = own.execution or ExecutionCapabilities()
    services = [name for protocol in grpc_protocols(settings) for name in protocol.services]
    return own.model_copy(
        update={
            "identity": own.identity or IdentityCapabilities(name="agui-container", version=__version__),
            "transport": TransportCapabilities(streaming=True, websocket=True, http_binary=False),
            "execution": execution.model_copy(update={"max_execution_time": int(settings.run_timeout * 1000)}),
            "custom": {
                **(own.custom or {}),
                **({"suggestions": list(settings.console_suggestions)} if settings.console_suggestions else {}),
                **({"prices": read_prices(settings.model_prices)} if settings.model_prices != "{}" else {}),
                **({} if settings.agent == "assistant" else {"agent": mask_passwords(settings.agent)}),
                "commands": [name for name in COMMANDS if has_files or not name.startswith("files.")],
                **({"grpc": services} if services else {}),
                "maxBodyBytes": settings.max_body_bytes,
                **({"maxRunTokens": settings.run_tokens} if settings.run_tokens else {}),
                **{name: value for it in http_protocols(settings) for name, value in it.capabilities.items()},
            },
        }
    )
