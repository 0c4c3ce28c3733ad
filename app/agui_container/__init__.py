"""An AG-UI server for any Python agent, made for Amazon Bedrock AgentCore Runtime.

The public names are those of ``__all__`` here and in ``agui_container.models``, ``agui_container.tools`` and
``agui_container.testing``. Everything else is private and may change in any release.

Rule: a public name is imported when it is first used, because a start must not pay for what it does not use.
"""

from typing import TYPE_CHECKING

from agui_container.imports import lazy_attributes

__version__ = "0.1.0"

__all__ = [
    "SYSTEM_PROMPT",
    "AppError",
    "Assistant",
    "ContextBudget",
    "ErrorCode",
    "MessageText",
    "Overflow",
    "RunContext",
    "RunInterrupted",
    "Settings",
    "SettingsError",
    "Subagent",
    "ToolError",
    "__version__",
    "as_agent",
    "ask_for_consent",
    "create_app",
    "langchain_middleware",
    "langchain_tools",
    "load_settings",
    "project_context",
    "pydantic_toolset",
    "read_context_files",
    "read_skills",
    "serve",
    "strands_tools",
    "system_text",
    "tool",
]

if TYPE_CHECKING:
    from agui_container.agents.agentcore_sdk import ask_for_consent
    from agui_container.agents.as_agent import as_agent
    from agui_container.agents.frameworks.server_tools import (
        langchain_middleware,
        langchain_tools,
        pydantic_toolset,
        strands_tools,
    )
    from agui_container.assistant.assistant import SYSTEM_PROMPT, Assistant
    from agui_container.assistant.context_window.window import ContextBudget, Overflow
    from agui_container.assistant.prompt.skills import read_skills
    from agui_container.assistant.prompt.system_text import project_context, read_context_files, system_text
    from agui_container.assistant.subagents import Subagent
    from agui_container.main import create_app
    from agui_container.ports import MessageText, RunContext, RunInterrupted, ToolError
    from agui_container.protocol.errors import AppError, ErrorCode
    from agui_container.server.run import serve
    from agui_container.settings import Settings, SettingsError
    from agui_container.settings_sources import load_settings
    from agui_container.tools.function_tool import tool
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "SYSTEM_PROMPT": "assistant.assistant",
            "AppError": "protocol.errors",
            "Assistant": "assistant.assistant",
            "ContextBudget": "assistant.context_window.window",
            "ErrorCode": "protocol.errors",
            "MessageText": "ports",
            "Overflow": "assistant.context_window.window",
            "RunContext": "ports",
            "RunInterrupted": "ports",
            "Settings": "settings",
            "SettingsError": "settings",
            "Subagent": "assistant.subagents",
            "ToolError": "ports",
            "as_agent": "agents.as_agent",
            "ask_for_consent": "agents.agentcore_sdk",
            "create_app": "main",
            "langchain_middleware": "agents.frameworks.server_tools",
            "langchain_tools": "agents.frameworks.server_tools",
            "load_settings": "settings_sources",
            "project_context": "assistant.prompt.system_text",
            "pydantic_toolset": "agents.frameworks.server_tools",
            "read_context_files": "assistant.prompt.system_text",
            "read_skills": "assistant.prompt.skills",
            "serve": "server.run",
            "strands_tools": "agents.frameworks.server_tools",
            "system_text": "assistant.prompt.system_text",
            "tool": "tools.function_tool",
        },
    )


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted(__all__)
