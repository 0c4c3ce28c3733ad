"""The composition root: settings in, application out. The only module that knows every name.

Rule: building the application reads the files that settings name and does no other I/O, makes no id and reads no clock;
that begins with the application's lifespan (AgentCore restores snapshots of started processes, reference 1.6).
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from ag_ui.core import (
    AgentCapabilities,
    ExecutionCapabilities,
    IdentityCapabilities,
    TransportCapabilities,
)
from fastapi import FastAPI
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from app import __version__
from app.agents.approvals import Approvals
from app.agents.assistant import SYSTEM_PROMPT, Assistant
from app.agents.budget import Budget, Overflow
from app.agents.callables import capabilities_of
from app.agents.instructions import project_context, system_text
from app.agents.loader import load_agent
from app.agents.project import ContextFileError, read_context_files
from app.agents.skills import Skill, SkillError, read_skills
from app.agents.subagents import Subagent
from app.core.errors import AppError
from app.core.inbound import COMMANDS
from app.edge import http, sse, ws
from app.edge.gate import Gate
from app.edge.refusal import on_app_error, on_error, on_http_error
from app.engine.policy import OnBusy, OnDisconnect, Policy
from app.engine.service import Service
from app.models.bedrock import BedrockModel, BedrockOptions
from app.models.offline import OfflineModel
from app.models.openai import OpenAIModel, Options
from app.ports import Agent, Model, Timer, Tool
from app.settings import Scope, Settings, SettingsError
from app.tools.builtin import builtin_tools
from app.tools.loader import load_tools
from app.tools.mcp import mcp_sources
from app.tools.mcp.servers import McpConfigError, parse_servers
from app.tools.policy import PolicyError, ToolPolicy

DRAIN_SECONDS = 2.0
"""How long open runs may go on after SIGTERM. AgentCore promises no particular grace; all must be over within 5 s."""

REFUSED_IN_STREAM = 200

DELEGATE = "Hand a part of the work to another assistant, which knows only what the task says and reports the result."


class SystemClock:
    """The real time and the running loop's timers."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """A timer of the running event loop."""
        return asyncio.get_running_loop().call_later(delay, callback)


def create_app(settings: Settings, service: Service | None = None) -> FastAPI:
    """The application for these settings; ``app.state.service`` is its engine, made here unless it is given.

    Raises:
        SettingsError: options, policy or servers that cannot be read.
        AgentLoadError, ToolLoadError: ``settings.agent`` or ``settings.tools`` names none.
    """
    service = service or build_service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.ready()
        yield
        await service.drain(0)
        await service.aclose()

    app = FastAPI(title="AG-UI agent", version=__version__, lifespan=lifespan, openapi_url=None)
    app.state.service = service
    app.include_router(http.routes(service))
    app.include_router(
        sse.routes(service, max_body=settings.max_body_bytes, keepalive=settings.keepalive),
    )
    app.include_router(
        ws.routes(service, max_body=settings.max_body_bytes, on_busy=OnBusy(settings.on_busy)),
    )
    app.add_exception_handler(AppError, on_app_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_error)
    app.add_middleware(
        Gate,
        origins=settings.cors_origins,
        by_session=settings.scope is Scope.SESSION,
        refused_status=REFUSED_IN_STREAM if settings.error_status == "stream" else None,
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["X-Request-Id"],
        )
    return app


def build_service(settings: Settings) -> Service:
    """The engine with its agent, wired."""
    tools = builtin_tools()
    closers: list[Callable[[], Awaitable[None]]] = []
    if settings.agent == "assistant":
        tools += load_tools(settings.tools) if settings.tools else ()
        agent: Agent = build_assistant(settings, tools, closers)
    else:
        agent = load_agent(settings.agent)
    return Service(
        agent,
        Policy(
            on_busy=OnBusy(settings.on_busy),
            on_disconnect=OnDisconnect(settings.disconnect_grace),
            run_timeout=settings.run_timeout,
        ),
        SystemClock(),
        tools={tool.spec.name: tool for tool in tools},
        capabilities=build_capabilities(agent, settings),
        new_id=lambda: str(uuid.uuid4()),
        closers=closers,
    )


def build_assistant(
    settings: Settings, tools: tuple[Tool, ...], closers: list[Callable[[], Awaitable[None]]]
) -> Assistant:
    """The built-in assistant with its model, tools and policy; what must be closed is added to ``closers``."""
    try:
        sources = mcp_sources(parse_servers(settings.mcp_servers))
        policy = ToolPolicy.parse(settings.tool_policy)
    except McpConfigError as error:
        raise SettingsError(f"AGUI_MCP_SERVERS: {error}") from None
    except PolicyError as error:
        raise SettingsError(f"AGUI_TOOL_POLICY: {error}") from None
    prompt, skills = read_guidance(settings)
    closers.extend(source.aclose for source in sources)
    assistant = Assistant(
        build_model(settings, closers),
        tools,
        prompt,
        settings.max_steps,
        sources=sources,
        policy=policy,
        trust_instructions=settings.trust_instructions,
        skills=skills,
        budget=Budget(settings.context_tokens, Overflow(settings.context_overflow)),
    )
    return delegating(assistant, settings.delegate_depth)


def read_guidance(settings: Settings) -> tuple[str, tuple[Skill, ...]]:
    """What the operator's files tell the assistant: the prompt with the project's context, and the skills."""
    try:
        files = read_context_files(settings.context_files)
        skills = read_skills(settings.skills) if settings.skills else ()
    except ContextFileError as error:
        raise SettingsError(f"AGUI_CONTEXT_FILES: {error}") from None
    except SkillError as error:
        raise SettingsError(f"AGUI_SKILLS: {error}") from None
    return system_text(settings.system_prompt or SYSTEM_PROMPT, project_context(files)), skills


def delegating(assistant: Assistant, depth: int) -> Assistant:
    """The assistant with others of its kind to hand work to, ``depth`` deep. Each keeps its own approvals."""
    if depth == 0:
        return assistant
    helper = Subagent("delegate", DELEGATE, delegating(replace(assistant, approvals=Approvals()), depth - 1))
    return replace(assistant, tools=(*assistant.tools, helper))


def build_model(settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> Model:
    """The model that ``AGUI_MODEL`` names, with its options."""
    kind, _, name = settings.model.partition(":")
    try:
        if kind == "bedrock":
            return BedrockModel(name, TypeAdapter(BedrockOptions).validate_json(settings.model_options))
        if kind == "openai":
            options = TypeAdapter(Options).validate_json(settings.model_options)
            key = settings.openai_api_key.get_secret_value() or None
            model = OpenAIModel(name, settings.openai_base_url, key, options)
            closers.append(model.aclose)
            return model
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise SettingsError(f"AGUI_MODEL_OPTIONS: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    except ValueError as error:
        raise SettingsError(f"AGUI_MODEL={settings.model}: {error}.") from None
    return OfflineModel()


def build_capabilities(agent: Agent, settings: Settings) -> AgentCapabilities:
    """What is really configured: the agent's own word, the transports, the limits."""
    own = capabilities_of(agent) or AgentCapabilities()
    execution = own.execution or ExecutionCapabilities()
    return own.model_copy(
        update={
            "identity": own.identity or IdentityCapabilities(name="agui-container", version=__version__),
            "transport": TransportCapabilities(streaming=True, websocket=True, http_binary=False),
            "execution": execution.model_copy(update={"max_execution_time": int(settings.run_timeout * 1000)}),
            "custom": {**(own.custom or {}), "commands": list(COMMANDS), "maxBodyBytes": settings.max_body_bytes},
        }
    )
