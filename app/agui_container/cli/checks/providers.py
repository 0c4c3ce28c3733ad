"""Checks of what an agent asks: models, MCP servers, AWS."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ag_ui.core import UserMessage

from agui_container.cli.checks.finding import CheckStatus, Finding, reason_of
from agui_container.cli.checks.machine import uses_aws
from agui_container.ports import Model, ToolError
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.model import Prompt
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import ASSISTANT, Settings
from agui_container.tools.mcp import McpConfigError, parse_servers
from agui_container.tools.mcp.servers import Server

QUESTION = Prompt("Answer with one word.", [UserMessage(id="doctor", content="Say ok.")])

ADVICE = {
    ErrorCode.MODEL_ACCESS_DENIED: "Check the key or the AWS credentials, and the access of the account to the model.",
    ErrorCode.MODEL_NOT_FOUND: "Check the name of the model, and its region or AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_THROTTLED: "Wait, or ask the provider for a larger quota.",
    ErrorCode.MODEL_UNAVAILABLE: "Check the network, the region and AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_TIMEOUT: "Check the network, the region and AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_REJECTED: "Check AGUI_MODEL_OPTIONS.",
}

AWS_SECONDS = 5
"""Seconds to connect to AWS, and to read an answer."""


async def check_models(settings: Settings) -> Sequence[Finding]:
    """Ask each model for its first token."""
    if ASSISTANT not in settings.agent_references.values():
        return [Finding("model", CheckStatus.SKIPPED, f"{settings.agent} chooses its model itself")]
    from agui_container.assistant_factory import build_model, build_models  # noqa: PLC0415 - other agents need none

    closers: list[Callable[[], Awaitable[None]]] = []
    try:
        models = {settings.model: build_model(settings.model, settings, closers), **build_models(settings, closers)}
        return [await check_model(name, model) for name, model in models.items()]
    finally:
        for close in closers:
            await close()


async def check_model(name: str, model: Model) -> Finding:
    """Ask a model for its first token, and end the call."""
    try:
        async with maybe_aclosing(model.stream(QUESTION)) as deltas:
            await anext(deltas, None)
    except AppError as error:
        status = CheckStatus.WARNING if error.code is ErrorCode.MODEL_THROTTLED else CheckStatus.FAILED
        return Finding("model", status, f"{name}: {reason_of(error)}", ADVICE.get(error.code, "See the reason."))
    return Finding("model", CheckStatus.OK, f"{name} answers")


async def check_mcp_servers(settings: Settings) -> Sequence[Finding]:
    """Ask each MCP server for its tools."""
    servers = parse_servers(settings.mcp_servers)
    if not servers:
        return [Finding("mcp", CheckStatus.SKIPPED, "the settings name no MCP server")]
    findings = []
    for server in servers:
        try:
            names = await tool_names(server)
            findings.append(Finding("mcp", CheckStatus.OK, f"{server.name}: {', '.join(names) or 'no tools'}"))
        except (McpConfigError, ToolError) as error:
            advice = "Check the url and the headers, or the command, of this server in AGUI_MCP_SERVERS."
            findings.append(Finding("mcp", CheckStatus.FAILED, f"{server.name}: {reason_of(error)}", advice))
    return findings


async def tool_names(server: Server) -> Sequence[str]:
    """Return the tools of an MCP server without a caller. Raises ``McpConfigError`` or ``ToolError``."""
    from agui_container.tools.mcp.source import McpSource  # noqa: PLC0415 - a slow import

    source = McpSource(server)
    try:
        return [tool.spec.name for tool in await source.tools_for().get()]
    finally:
        await source.aclose()


async def check_aws(settings: Settings) -> Sequence[Finding]:
    """Check the region and the identity. The check of the model shows the access to Bedrock."""
    if not uses_aws(settings):
        return [Finding("aws", CheckStatus.SKIPPED, "the settings name nothing of AWS")]
    return await asyncio.to_thread(ask_aws)


def ask_aws() -> Sequence[Finding]:
    """Ask AWS who this is. Blocks for some seconds at most."""
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - a slow import
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config(connect_timeout=AWS_SECONDS, read_timeout=AWS_SECONDS, retries={"total_max_attempts": 1})
    try:
        session = Session(region_name=os.environ.get("AWS_REGION"))
        region: str | None = session.region_name
        identity: dict[str, Any] = session.client("sts", region or "us-east-1", config=config).get_caller_identity()
        found = Finding("aws identity", CheckStatus.OK, str(identity["Arn"]))
    except (BotoCoreError, ClientError) as error:
        region = os.environ.get("AWS_REGION")
        advice = "Give this process credentials: a role, a profile (AWS_PROFILE) or keys."
        found = Finding("aws identity", CheckStatus.FAILED, f"{type(error).__name__}: {error}", advice)
    if region is None:
        advice = "Set AWS_REGION to the region of the model."
        return [Finding("aws region", CheckStatus.FAILED, "there is none", advice), found]
    return [Finding("aws region", CheckStatus.OK, region), found]
