"""Construction of the built-in assistant from its settings: model, tools, policy, prompt, skills and subagents.

Rule: settings are parsed and checked here at the start, and an error names its setting. The only I/O is reading the
files that settings name. Models and MCP are imported only if a setting names them, which keeps the start fast.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agui_container.assistant.assistant import SYSTEM_PROMPT, Assistant
from agui_container.assistant.context_window.window import ContextBudget, Overflow
from agui_container.assistant.prompt.skills import Skill, SkillError, read_skills, skill_tools
from agui_container.assistant.prompt.system_text import (
    ContextFileError,
    project_context,
    read_context_files,
    system_text,
)
from agui_container.assistant.subagents import Subagent
from agui_container.ports import Model, Tool, ToolSource
from agui_container.settings import Settings, SettingsError, check_extra
from agui_container.tools.policy import ToolPolicy

T = TypeVar("T")

MODEL = re.compile(r"offline|bedrock:.+|openai:.+")
"""Pattern of a model in ``AGUI_MODEL`` and ``AGUI_MODELS``."""

DELEGATE_NAME = "delegate"
DELEGATE = "Hand a part of the work to another assistant, which knows only what the task says and reports the result."


@dataclass(frozen=True, slots=True)
class NoOptions:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def build_assistant(
    settings: Settings,
    policy: ToolPolicy,
    tools: tuple[Tool, ...],
    sources: Sequence[ToolSource],
    closers: list[Callable[[], Awaitable[None]]],
) -> Assistant:
    """Functions that close connections are appended to ``closers``. Raises ``SettingsError``."""
    check_effect(settings)
    prompt, skills = read_prompt_and_skills(settings)
    check_names(tools, skills, settings.delegate_depth)
    assistant = Assistant(
        build_model(settings.model, settings, closers),
        tools,
        prompt,
        settings.max_steps,
        sources=tuple(sources),
        policy=policy,
        trust_instructions=settings.trust_instructions,
        skills=skills,
        budget=ContextBudget(settings.context_tokens, Overflow(settings.context_overflow)),
        asks=policy.asks,
        max_tokens=settings.run_tokens or None,
        models=build_models(settings, closers),
    )
    return with_delegation(assistant, settings.delegate_depth)


def read_prompt_and_skills(settings: Settings) -> tuple[str, tuple[Skill, ...]]:
    try:
        files = read_context_files(settings.context_files)
        skills = read_skills(settings.skills) if settings.skills else ()
    except ContextFileError as error:
        raise SettingsError(f"AGUI_CONTEXT_FILES: {error}") from None
    except SkillError as error:
        raise SettingsError(f"AGUI_SKILLS: {error}") from None
    return system_text(settings.system_prompt or SYSTEM_PROMPT, project_context(files)), skills


def with_delegation(assistant: Assistant, depth: int) -> Assistant:
    """Return the assistant with a subagent of its kind, nested ``depth`` levels deep."""
    if depth == 0:
        return assistant
    subagent = Subagent(DELEGATE_NAME, DELEGATE, with_delegation(assistant, depth - 1))
    return replace(assistant, tools=(*assistant.tools, subagent))


def build_model(reference: str, settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> Model:
    """``AGUI_MODEL_OPTIONS`` applies only to models of the same kind as ``AGUI_MODEL``. Raises ``SettingsError``."""
    kind, _, name = reference.partition(":")
    if kind != settings.model.partition(":")[0]:
        settings = settings.model_copy(update={"model_options": "{}"})
    try:
        if kind == "bedrock":
            return build_bedrock(name, settings)
        if kind == "openai":
            return build_openai(name, settings, closers)
    except ValueError as error:
        raise SettingsError(f"AGUI_MODEL={reference}: {error}.") from None
    return build_offline(settings)


def build_models(settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> dict[str, Model]:
    """Entries are ``NAME=KIND:ID`` or ``KIND:ID``, whose name is the entry itself. Raises ``SettingsError``."""
    models: dict[str, Model] = {}
    for entry in settings.models:
        alias, separator, reference = entry.rpartition("=")
        if not MODEL.fullmatch(reference) or (separator and not alias):
            raise SettingsError(
                f"AGUI_MODELS: '{entry}' is not NAME=KIND:ID or KIND:ID, with bedrock, openai or offline."
            )
        models[alias or reference] = build_model(reference, settings, closers)
    return models


def build_bedrock(name: str, settings: Settings) -> Model:
    check_extra(f"AGUI_MODEL=bedrock:{name}", "aws")
    from agui_container.models.bedrock import BedrockModel, BedrockOptions  # noqa: PLC0415

    return BedrockModel(name, read_options(BedrockOptions, settings))


def build_openai(name: str, settings: Settings, closers: list[Callable[[], Awaitable[None]]]) -> Model:
    from agui_container.models.openai import OpenAIModel, OpenAIOptions  # noqa: PLC0415

    key = settings.openai_api_key.get_secret_value() or None
    model = OpenAIModel(name, settings.openai_base_url, key, read_options(OpenAIOptions, settings))
    closers.append(model.aclose)
    return model


def build_offline(settings: Settings) -> Model:
    from agui_container.models.offline import OfflineModel  # noqa: PLC0415

    read_options(NoOptions, settings)
    return OfflineModel()


def read_options(kind: type[T], settings: Settings) -> T:
    try:
        return TypeAdapter(kind).validate_json(settings.model_options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise SettingsError(f"AGUI_MODEL_OPTIONS: {where}{first['msg']}.") from None


def check_effect(settings: Settings) -> None:
    if settings.context_overflow == "summarise" and not settings.context_tokens:
        raise SettingsError(f"AGUI_CONTEXT_OVERFLOW={settings.context_overflow} needs AGUI_CONTEXT_TOKENS.")
    uses_openai = any("openai:" in model for model in (settings.model, *settings.models))
    for name in () if uses_openai else ("openai_base_url", "openai_api_key"):
        value = getattr(settings, name)
        if value and value != Settings.model_fields[name].default:
            raise SettingsError(f"AGUI_{name.upper()} is for AGUI_MODEL=openai:NAME, which is {settings.model}.")


def check_names(tools: Sequence[Tool], skills: Sequence[Skill], delegate_depth: int) -> None:
    own = [(tool.spec.name, "AGUI_SKILLS") for tool in skill_tools(skills)]
    own += [(DELEGATE_NAME, "AGUI_DELEGATE_DEPTH")] if delegate_depth else []
    names = {tool.spec.name for tool in tools}
    for name, setting in own:
        if name in names:
            raise SettingsError(f"AGUI_TOOLS: the name '{name}' is taken by the tool that {setting} brings.")
