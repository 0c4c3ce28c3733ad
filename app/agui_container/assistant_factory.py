"""The built-in assistant from its settings: model, tools, policy, guidance, helpers.

Rule: what a setting holds is read and checked here, at the start, and a mistake names the setting. There is no I/O but
reading the files that settings name. Models and MCP are imported where a setting names them: a start pays for what it
uses.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agui_container.agents.assistant.assistant import SYSTEM_PROMPT, Assistant
from agui_container.agents.assistant.context_window.budget import ContextBudget, Overflow
from agui_container.agents.assistant.prompt.skills import Skill, SkillError, read_skills, skill_tools
from agui_container.agents.assistant.prompt.system_text import (
    ContextFileError,
    project_context,
    read_context_files,
    system_text,
)
from agui_container.agents.assistant.subagents import Subagent
from agui_container.ports import Model, Tool, ToolSource
from agui_container.settings import Settings, SettingsError
from agui_container.tools.policy import PolicyError, ToolPolicy

T = TypeVar("T")

MODEL = re.compile(r"offline|bedrock:.+|openai:.+")
"""A model in ``AGUI_MODEL`` and ``AGUI_MODELS``."""

DELEGATE_NAME = "delegate"
DELEGATE = "Hand a part of the work to another assistant, which knows only what the task says and reports the result."


@dataclass(frozen=True, slots=True)
class NoOptions:
    """What the offline model can be told."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def build_assistant(
    settings: Settings, tools: tuple[Tool, ...], closers: list[Callable[[], Awaitable[None]]]
) -> Assistant:
    """The built-in assistant with its model, tools and policy; what must be closed is added to ``closers``."""
    sources = read_sources(settings)
    try:
        policy = ToolPolicy.parse(settings.tool_policy)
    except PolicyError as error:
        raise SettingsError(f"AGUI_TOOL_POLICY: {error}") from None
    check_effect(settings)
    prompt, skills = read_guidance(settings)
    check_names(tools, skills, settings.delegate_depth)
    closers.extend(source.aclose for source in sources)
    assistant = Assistant(
        build_model(settings.model, settings, closers),
        tools,
        prompt,
        settings.max_steps,
        sources=sources,
        policy=policy,
        trust_instructions=settings.trust_instructions,
        skills=skills,
        budget=ContextBudget(settings.context_tokens, Overflow(settings.context_overflow)),
        asks=policy.asks,
        max_tokens=settings.run_tokens or None,
        goal_prompts=settings.goal_prompts,
        models=build_models(settings, closers),
    )
    return with_delegation(assistant, settings.delegate_depth)


def read_sources(settings: Settings) -> tuple[ToolSource, ...]:
    """The tools of the MCP servers."""
    if settings.mcp_servers == Settings.model_fields["mcp_servers"].default:
        return ()
    from agui_container.tools.mcp import McpConfigError, mcp_sources, parse_servers  # noqa: PLC0415

    try:
        return mcp_sources(parse_servers(settings.mcp_servers))
    except McpConfigError as error:
        raise SettingsError(f"AGUI_MCP_SERVERS: {error}") from None


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


def with_delegation(assistant: Assistant, depth: int) -> Assistant:
    """The assistant with others of its kind to hand work to, ``depth`` deep."""
    if depth == 0:
        return assistant
    helper = Subagent(DELEGATE_NAME, DELEGATE, with_delegation(assistant, depth - 1))
    return replace(assistant, tools=(*assistant.tools, helper))


def build_model(named: str, settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> Model:
    """The model of a name such as ``bedrock:ID``, with the options of ``AGUI_MODEL_OPTIONS`` if they are its kind's."""
    kind, _, name = named.partition(":")
    if kind != settings.model.partition(":")[0]:
        settings = settings.model_copy(update={"model_options": "{}"})
    try:
        if kind == "bedrock":
            return build_bedrock(name, settings)
        if kind == "openai":
            return build_openai(name, settings, closers)
    except ValueError as error:
        raise SettingsError(f"AGUI_MODEL={named}: {error}.") from None
    return build_offline(settings)


def build_models(settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> dict[str, Model]:
    """The models of ``AGUI_MODELS``, by the names that callers choose them by: ``NAME=KIND:ID``, or ``KIND:ID``.

    Raises:
        SettingsError: for an entry that names no model.
    """
    models: dict[str, Model] = {}
    for entry in settings.models:
        alias, separator, named = entry.rpartition("=")
        if not MODEL.fullmatch(named) or (separator and not alias):
            raise SettingsError(
                f"AGUI_MODELS: '{entry}' is not NAME=KIND:ID or KIND:ID, with bedrock, openai or offline."
            )
        models[alias or named] = build_model(named, settings, closers)
    return models


def build_bedrock(name: str, settings: Settings) -> Model:
    """A model of Amazon Bedrock."""
    from agui_container.models.bedrock import BedrockModel, BedrockOptions  # noqa: PLC0415

    return BedrockModel(name, read_options(BedrockOptions, settings))


def build_openai(name: str, settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> Model:
    """A model behind the chat completions API; its connections are closed at the end."""
    from agui_container.models.openai import OpenAIModel, OpenAIOptions  # noqa: PLC0415

    key = settings.openai_api_key.get_secret_value() or None
    model = OpenAIModel(name, settings.openai_base_url, key, read_options(OpenAIOptions, settings))
    closers.append(model.aclose)
    return model


def build_offline(settings: Settings) -> Model:
    """The model that needs nothing."""
    from agui_container.models.offline import OfflineModel  # noqa: PLC0415

    read_options(NoOptions, settings)
    return OfflineModel()


def read_options(kind: type[T], settings: Settings) -> T:
    """The options of a model. Raises ``SettingsError`` for a name that it does not know, too."""
    try:
        return TypeAdapter(kind).validate_json(settings.model_options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise SettingsError(f"AGUI_MODEL_OPTIONS: {where}{first['msg']}.") from None


def check_effect(settings: Settings) -> None:
    """Raises ``SettingsError`` for a setting of the assistant that another one leaves without effect."""
    if settings.context_overflow == "summarise" and not settings.context_tokens:
        raise SettingsError(f"AGUI_CONTEXT_OVERFLOW={settings.context_overflow} needs AGUI_CONTEXT_TOKENS.")
    uses_openai = any("openai:" in model for model in (settings.model, *settings.models))
    for name in () if uses_openai else ("openai_base_url", "openai_api_key"):
        value = getattr(settings, name)
        if value and value != Settings.model_fields[name].default:
            raise SettingsError(f"AGUI_{name.upper()} is for AGUI_MODEL=openai:NAME, which is {settings.model}.")


def check_names(tools: Sequence[Tool], skills: Sequence[Skill], delegate_depth: int) -> None:
    """Raises ``SettingsError`` where a tool has the name of one that the assistant brings itself."""
    own = [(tool.spec.name, "AGUI_SKILLS") for tool in skill_tools(skills)]
    own += [(DELEGATE_NAME, "AGUI_DELEGATE_DEPTH")] if delegate_depth else []
    names = {tool.spec.name for tool in tools}
    for name, setting in own:
        if name in names:
            raise SettingsError(f"AGUI_TOOLS: the name '{name}' is taken by the tool that {setting} brings.")
