"""Checks of what the settings name: the agent, its store, and whom it asks; and of the project's requirements.

Rules:

- A check yields findings and changes nothing.
- An exception that it raises is a finding, too, with the advice of ``ADVICE``.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path

from ag_ui.core import UserMessage
from msgspec import Struct

from agui_container.aws.deploy.requirements import REQUIREMENTS, find_faults
from agui_container.imports import is_installed
from agui_container.main import build_app, build_files, open_url
from agui_container.ports import Model, ToolError
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.model import Prompt
from agui_container.ports.store import DurableStore
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.replicas.buses import open_bus
from agui_container.settings import ASSISTANT, Auth, Settings, check_auth
from agui_container.stores import open_store
from agui_container.stores.files import BUCKET, OFF
from agui_container.stores.memory import MemoryStore
from agui_container.tools.mcp import McpConfigError, parse_servers
from agui_container.tools.mcp.servers import Server

QUESTION = Prompt("Answer with one word.", [UserMessage(id="doctor", content="Say ok.")])

ADVICE = {
    "agent": "Correct this setting or the code that it names.",
    "store": "Check the address, user, password and network of AGUI_STORE.",
    "files": "Correct AGUI_FILES, or the rights of the server there.",
    "bus": "Check the address, user, password and network of AGUI_BUS.",
    "auth": "Check AGUI_AUTH_DISCOVERY_URL and the network.",
    "mcp": "Check the url and the headers, or the command, of this server in AGUI_MCP_SERVERS.",
    "install": f"Correct {REQUIREMENTS}, or the index of pip.",
}
"""What to do if a check fails."""

PIP_INSTALL = (sys.executable, "-P", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--no-input")

MODEL_ADVICE = {
    ErrorCode.MODEL_ACCESS_DENIED: "Check the key or the AWS credentials, and the access of the account to the model.",
    ErrorCode.MODEL_NOT_FOUND: "Check the name of the model, and its region or AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_THROTTLED: "Wait, or ask the provider for a larger quota.",
    ErrorCode.MODEL_UNAVAILABLE: "Check the network, the region and AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_TIMEOUT: "Check the network, the region and AGUI_OPENAI_BASE_URL.",
    ErrorCode.MODEL_REJECTED: "Check AGUI_MODEL_OPTIONS.",
}


class CheckStatus(StrEnum):
    """Result of a check. Only ``FAILED`` makes ``agui doctor`` fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(Struct, frozen=True, omit_defaults=True):
    """Result of one check.

    Attributes:
        name: subject of the check.
        status: result.
        detail: fact that was found.
        advice: sentence that says what to do; empty if there is nothing to do.
    """

    name: str
    status: CheckStatus
    detail: str
    advice: str = ""


Findings = AsyncIterator[Finding]


def ok(name: str, detail: str) -> Finding:
    return Finding(name, CheckStatus.OK, detail)


def skipped(name: str, detail: str) -> Finding:
    return Finding(name, CheckStatus.SKIPPED, detail)


def failed(name: str, detail: str, advice: str = "") -> Finding:
    return Finding(name, CheckStatus.FAILED, detail, advice or ADVICE.get(name, "See the reason."))


def reason_of(error: BaseException) -> str:
    """Return the text of an error and the first line of its cause, for the operator."""
    text, cause = str(error).rstrip("."), error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if cause is None:
        return text
    return ": ".join(filter(None, (text, type(cause).__name__, next(iter(str(cause).splitlines()), ""))))


async def check_agent(settings: Settings) -> Findings:
    with redirect_stdout(sys.stderr):  # an agent may print while it is imported
        build_app(settings)
    yield ok("agent", f"{', '.join(settings.agent_references)} can be served")


async def check_store(settings: Settings) -> Findings:
    url = settings.store.get_secret_value()
    if url == "memory":
        yield ok("store", "memory: threads end with the process")
        return
    file = Path(url.partition("///")[2].partition("?")[0])
    if url.startswith("sqlite:") and not file.exists():  # noqa: ASYNC240 - a file of this machine
        if may_write(file.parent):
            yield ok("store", f"{file} is made at the start")
        else:
            advice = "Make the folder, or let the user of the server write to it."
            yield failed("store", f"{file} cannot be made in {file.parent}", advice)
        return
    store = open_url("AGUI_STORE", url, open_store)
    try:
        if not isinstance(store, DurableStore):
            await store.threads("agui-doctor", limit=1)
            yield ok("store", "AgentCore Memory answers")
            return
        from agui_container.stores.sql.store import SqlStore  # noqa: PLC0415 - imported only if it is used

        missing = await store.count_missing_steps() if isinstance(store, SqlStore) else 0
        yield ok("store", "the database answers")
        if missing:
            advice = "The next start of a server applies them. Keep a backup until it has started."
            yield Finding("migrations", CheckStatus.WARNING, f"{missing} steps are missing", advice)
        else:
            yield ok("migrations", "the schema is that of this version")
    finally:
        await store.aclose()


def may_write(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


async def check_files(settings: Settings) -> Findings:
    """Check the place that the settings name. Without one, files are kept beside the threads."""
    if settings.files in ("", OFF):
        return
    files = build_files(settings, MemoryStore())
    if files is None or not settings.files.startswith(BUCKET):
        yield check_folder(Path(settings.files).expanduser())  # noqa: ASYNC240 - a folder of this machine
        return
    try:
        await files.get("agui-doctor", "no-file")
        yield ok("files", "the bucket answers")
    finally:
        await files.aclose()


def check_folder(folder: Path) -> Finding:
    parent = next(each for each in (folder, *folder.parents) if each.exists())
    if may_write(parent):
        return ok("files", f"{folder} can be written")
    return failed("files", f"{folder} cannot be written: {parent} is no folder, or not for this user")


async def check_bus(settings: Settings) -> Findings:
    url = settings.bus.get_secret_value()
    if url == "memory":
        return
    bus = open_url("AGUI_BUS", url, open_bus)
    try:
        await bus.open()
        yield ok("bus", "the bus answers")
    finally:
        await bus.aclose()


async def check_issuer(settings: Settings) -> Findings:
    if settings.auth is Auth.NONE:
        return
    check_auth(settings)
    from agui_container.auth.tokens import fetch_keys  # noqa: PLC0415 - needs the extra jwt

    found = await fetch_keys(settings.auth_discovery_url)
    count = len(found.keys)
    yield ok("auth", f"{found.issuer} has {count} keys") if count else failed("auth", f"{found.issuer} has no key")


async def check_models(settings: Settings) -> Findings:
    if ASSISTANT not in settings.agent_references.values():
        yield skipped("model", f"{settings.agent} chooses its model itself")
        return
    from agui_container.assistant_factory import build_model, build_models  # noqa: PLC0415 - other agents need none

    closers: list[Callable[[], Awaitable[None]]] = []
    try:
        models = {settings.model: build_model(settings.model, settings, closers), **build_models(settings, closers)}
        for name, model in models.items():
            yield await ask_model(name, model)
    finally:
        for close in closers:
            await close()


async def ask_model(name: str, model: Model) -> Finding:
    try:
        async with maybe_aclosing(model.stream(QUESTION)) as deltas:
            await anext(deltas, None)
    except AppError as error:
        status = CheckStatus.WARNING if error.code is ErrorCode.MODEL_THROTTLED else CheckStatus.FAILED
        return Finding("model", status, f"{name}: {reason_of(error)}", MODEL_ADVICE.get(error.code, "See the reason."))
    return ok("model", f"{name} answers")


async def check_mcp_servers(settings: Settings) -> Findings:
    servers = parse_servers(settings.mcp_servers)
    if not servers:
        yield skipped("mcp", "the settings name no MCP server")
    for server in servers:
        try:
            yield ok("mcp", f"{server.name}: {', '.join(await tool_names(server)) or 'no tools'}")
        except (McpConfigError, ToolError) as error:
            yield failed("mcp", f"{server.name}: {reason_of(error)}")


async def tool_names(server: Server) -> list[str]:
    from agui_container.tools.mcp.source import McpSource  # noqa: PLC0415 - a slow import

    source = McpSource(server)
    try:
        return [tool.spec.name for tool in await source.tools_for().get()]
    finally:
        await source.aclose()


async def check_installation(_: Settings) -> Findings:
    """Let pip resolve the requirements of the folder as if nothing was installed."""
    file = Path(REQUIREMENTS)
    if not (file.is_file() and is_installed("pip")):  # noqa: ASYNC240 - a file of this machine
        yield skipped("install", f"there is no {REQUIREMENTS}, or no pip to ask")
        return
    texts = {REQUIREMENTS: file.read_text(encoding="utf-8-sig")}  # noqa: ASYNC240
    faults = [*find_faults(texts, lambda path: Path(path).is_file())] or await unresolved()
    for fault in faults:
        yield failed("install", fault)
    if not faults:
        yield ok("install", f"an empty environment can install {REQUIREMENTS}")


async def unresolved() -> list[str]:
    """Return the reason of pip, or nothing if an empty environment could install the requirements."""
    pip = await asyncio.create_subprocess_exec(*PIP_INSTALL, "-r", REQUIREMENTS, stdout=DEVNULL, stderr=PIPE)
    try:
        _, printed = await pip.communicate()
    finally:
        if pip.returncode is None:  # the limit of a check has ended the wait
            pip.kill()
            await pip.wait()
    return [printed.decode(errors="replace").strip().rpartition("\n")[2]] if pip.returncode else []
