"""The names of OpenTelemetry's GenAI conventions that are used here, and what is said by them of usage.

Source: semantic conventions for generative AI, agent and inference spans. The version is the one that AWS's
distribution reads: ``gen_ai.provider.name``, messages as attributes.
"""

from collections.abc import Iterable

from ag_ui.core import TokenUsage

Attributes = dict[str, str | int | tuple[str, ...]]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
CONVERSATION = "gen_ai.conversation.id"
AGENT, AGENT_ID, AGENT_ABOUT = "gen_ai.agent.name", "gen_ai.agent.id", "gen_ai.agent.description"
TOOL, TOOL_TYPE, TOOL_CALL = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
INSTRUCTIONS, INPUT, OUTPUT = "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"
FINISH = "gen_ai.response.finish_reasons"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - tokens of a model
ERROR = "error.type"
SESSION = "session.id"
RUN, STATUS, REQUEST = "agui.run.id", "agui.run.status", "agui.request.id"

PROVIDERS = {"bedrock": "aws.bedrock", "openai-compatible": "openai"}
"""Providers as ``TokenUsage`` names them, where the conventions have another word."""

USAGE = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_input_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write_input_tokens",
    "gen_ai.usage.reasoning.output_tokens": "reasoning_tokens",
}
"""Attributes by the fields of ``TokenUsage`` that they are."""


def used(usage: Iterable[TokenUsage]) -> Attributes:
    """The sums of what was reported."""
    entries = list(usage)
    sums = {name: [getattr(entry, field) for entry in entries] for name, field in USAGE.items()}
    return {name: sum(filter(None, counts)) for name, counts in sums.items() if any(c is not None for c in counts)}
