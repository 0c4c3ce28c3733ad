"""Anthropic's Claude Agent SDK, by the messages of Claude's command line.

The SDK's package for AG-UI (0.2) asks no client for a permission, and shows exception texts.

Rules:

- A thread is a session of the SDK, with an id that is made of the thread's. A process answers one prompt.
- A call that the client must run or permit holds its process. The run with the answer continues there.
- A prompt is read as it is written: paths in it are not opened, and its commands are not run.
- What a subagent does is not shown, except a call that waits for the client.
"""

import asyncio
import json
import warnings
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RunAgentInput,
    TokenUsage,
    ToolCallChunkEvent,
    ToolCallResultEvent,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec
from claude_agent_sdk import (
    CanUseToolShadowedWarning,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SdkMcpTool,
    StreamEvent,
    ToolPermissionContext,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    delete_session,
    delete_session_via_store,
    get_session_info,
    get_session_info_from_store,
)
from msgspec import Struct

from agui_container.agents.answer_events import AnswerEvents
from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks.adapter import AdapterSource, end_asking
from agui_container.agents.frameworks.translation import FrameworkError, failed_tool, result_text
from agui_container.agents.gate.approval import call_question
from agui_container.ports import RunContext
from agui_container.protocol.errors import validation_error

Json = dict[str, Any]

SERVER = "ag_ui"
"""Name of the MCP server with the client's tools."""

CLIENT = f"mcp__{SERVER}__"

WAITING = 100
"""Maximum number of processes that wait for a client. Above it the oldest ends, and its answer is refused."""

WAIT_SECONDS = 7 * 24 * 3600.0
"""The command line gives up a hook after a minute unless told."""

INTERRUPT_SECONDS = 5.0
DENIED = "The user did not allow this call."


def wrap(source: ClaudeAgentOptions, name: str) -> AdapterSource:
    if not isinstance(source.mcp_servers, dict):
        raise AgentLoadError(f"'{name}' names a file of MCP servers: give mcp_servers as a dict.")
    if source.can_use_tool is None:
        # The SDK would warn that a rule which allows a tool leaves out a callback, which is ours.
        warnings.simplefilter("ignore", CanUseToolShadowedWarning)
    sessions = ClaudeSessions(source)
    return AdapterSource(sessions.translate, forget=sessions.forget)


class ClaudeSessions:
    """The sessions of an agent, and the processes that wait for a client."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        self._options = options
        self._folder = str(options.cwd or ".")
        self._waiting: dict[str, Process] = {}

    async def translate(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        process = self._waiting.pop(input.thread_id, None)
        try:
            if process is None or not process.answer(input):
                if process is not None:
                    await process.close()
                prompt = prompt_of(input)
                process = Process()
                await process.open(await self._resumed(input.thread_id), input.tools or (), prompt)
            async with aclosing(process.events(ctx)) as events:
                async for event in events:
                    yield event
            if process.waiting:
                self._waiting[input.thread_id] = process
        finally:
            if process is not None and input.thread_id not in self._waiting:
                await process.close()
        while len(self._waiting) > WAITING:
            await self._waiting.pop(next(iter(self._waiting))).close()
        if questions := process.questions():
            yield end_asking(questions, ctx)

    async def forget(self, thread: str) -> None:
        if (process := self._waiting.pop(thread, None)) is not None:
            await process.close()
        if self._options.session_store is not None:
            await delete_session_via_store(self._options.session_store, session_of(thread), self._folder)
        else:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(delete_session, session_of(thread), self._folder)

    async def _resumed(self, thread: str) -> ClaudeAgentOptions:
        """Return the options that begin the thread's session, or resume it if there is one."""
        session, store = session_of(thread), self._options.session_store
        if store is not None:
            info = await get_session_info_from_store(store, session, self._folder)
        else:
            info = await asyncio.to_thread(get_session_info, session, self._folder)
        which = {"session_id": session, "resume": None} if info is None else {"session_id": None, "resume": session}
        return replace(self._options, continue_conversation=False, **which)


class ClaudeCall(Struct):
    """A call that waits for the client. Its answer is a result, or a decision if it is a question."""

    id: str
    name: str
    arguments: str
    is_question: bool
    is_of_subagent: bool
    answer: asyncio.Future[Any]


class Process:
    """A process of Claude's command line, from a prompt to the end of its answer."""

    def __init__(self) -> None:
        self.waiting: dict[str, ClaudeCall] = {}
        self._client: ClaudeSDKClient | None = None
        self._reader: asyncio.Task[None] | None = None
        self._items: asyncio.Queue[object] = asyncio.Queue()
        self._answers: dict[tuple[str, bool], Any] = {}
        self._results: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._denied: set[str] = set()
        self._client_calls: set[str] = set()
        self._calls: dict[str, str] = {}
        self._stream = MessageStream(self._calls)
        self._is_over = False

    async def open(self, options: ClaudeAgentOptions, tools: Sequence[ToolSpec], prompt: Sequence[Json]) -> None:
        servers: dict[str, Any] = {**options.mcp_servers}
        if tools:
            servers[SERVER] = create_sdk_mcp_server(SERVER, tools=[self._client_tool(spec) for spec in tools])
        hook = HookMatcher(matcher=f"{CLIENT}.*", hooks=[self._run_by_client], timeout=WAIT_SECONDS)
        hooks = dict(options.hooks or {})
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), hook]
        permit = None if options.permission_prompt_tool_name else self._permit
        self._client = ClaudeSDKClient(
            replace(
                options,
                can_use_tool=options.can_use_tool or permit,
                hooks=hooks,
                include_partial_messages=True,
                mcp_servers=servers,
                verbatim_prompts=True,
            )
        )
        await self._client.connect()
        await self._client.query(user_messages(prompt))
        self._reader = asyncio.create_task(self._read(self._client))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        if self._reader is not None and not self._is_over:
            with suppress(Exception):
                async with asyncio.timeout(INTERRUPT_SECONDS):
                    await client.interrupt()
        await client.disconnect()
        if self._reader is not None:
            self._reader.cancel()

    def answer(self, input: RunAgentInput) -> bool:
        """Answer the calls that wait. Return False if the input answers none of them."""
        results = takewhile(lambda message: isinstance(message, ToolMessage), reversed(input.messages))
        answers = {(each.tool_call_id, False): result_text(each) for each in results if isinstance(each, ToolMessage)}
        decisions = {(entry.interrupt_id, True): entry.payload is True for entry in input.resume or ()}
        self._answers = {**answers, **decisions}
        answered = [call for call in self.waiting.values() if (call.id, call.is_question) in self._answers]
        for call in answered:
            del self.waiting[call.id]
            call.answer.set_result(self._answers[call.id, call.is_question])
        return bool(answered)

    def questions(self) -> list[Interrupt]:
        return [call_question(each.id, each.name, each.arguments) for each in self.waiting.values() if each.is_question]

    async def events(self, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        """Yield events until the answer ends, or a call waits. Raises ``FrameworkError``."""
        while not self._waits():
            match await self._items.get():
                case ClaudeCall(is_of_subagent=True) as call:
                    self._calls[call.id] = call.name
                    yield ToolCallChunkEvent(tool_call_id=call.id, tool_call_name=call.name, delta=call.arguments)
                case StreamEvent(parent_tool_use_id=None) as message:
                    for event in self._stream.read(message.event, ctx):
                        yield event
                case UserMessage(content=list(blocks)):
                    for result in self._results_of(blocks, ctx):
                        yield result
                case ResultMessage() as end:
                    self._is_over = True
                    if end.is_error:
                        raise FrameworkError(end.subtype, "; ".join(end.errors or ()) or end.result or "")
                    return
                case Exception() as error:
                    raise error

    def _waits(self) -> bool:
        """Return True once a call waits and the message with it was read."""
        return bool(self.waiting) and self.waiting.keys() <= self._calls.keys() and not self._stream.is_open

    async def _read(self, client: ClaudeSDKClient) -> None:
        try:
            async for message in client.receive_messages():
                self._items.put_nowait(message)
            self._items.put_nowait(FrameworkError("process", "Claude's command line ended without a result"))
        except Exception as error:  # noqa: BLE001 - raised in the run
            self._items.put_nowait(error)

    def _results_of(self, blocks: Sequence[object], ctx: RunContext) -> Sequence[BaseEvent]:
        """Return the results of calls that were shown, except those that the client has sent."""
        results = [each for each in blocks if isinstance(each, ToolResultBlock) and each.tool_use_id in self._calls]
        return [self._result(each, ctx) for each in results if each.tool_use_id not in self._client_calls]

    def _result(self, block: ToolResultBlock, ctx: RunContext) -> BaseEvent:
        id_, content = block.tool_use_id, text_of(block.content)
        if block.is_error and id_ not in self._denied:
            name = self._calls[id_]
            content = failed_tool(name, FrameworkError(name, content), ctx)
        return ToolCallResultEvent(message_id=ctx.new_id(), tool_call_id=id_, content=content)

    # --- calls that the command line leaves to the client -------------------------------------------------------------

    async def _wait(self, id_: str, name: str, arguments: Json, *, is_question: bool, agent: str | None) -> Any:  # noqa: ANN401 - a result or a decision
        if (id_, is_question) in self._answers:
            return self._answers[id_, is_question]
        answer = asyncio.get_running_loop().create_future()
        call = ClaudeCall(id_, shown_name(name), json.dumps(arguments), is_question, agent is not None, answer)
        self.waiting[id_] = call
        self._items.put_nowait(call)
        try:
            return await answer
        finally:
            self.waiting.pop(id_, None)

    async def _run_by_client(self, hook: Any, call_id: str | None, _: object) -> Any:  # noqa: ANN401 - dicts of the SDK
        id_ = call_id or hook["tool_use_id"]
        self._client_calls.add(id_)
        name, arguments = hook["tool_name"], hook["tool_input"]
        result = await self._wait(id_, name, arguments, is_question=False, agent=hook.get("agent_id"))
        self._results[shown_name(name), json.dumps(arguments)].append(result)
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}

    def _client_tool(self, spec: ToolSpec) -> SdkMcpTool[Json]:
        async def result(arguments: Json) -> Json:
            return {"content": [{"type": "text", "text": self._results[spec.name, json.dumps(arguments)].pop(0)}]}

        schema = spec.parameters or {"type": "object", "properties": {}}
        return SdkMcpTool(name=spec.name, description=spec.description, input_schema=schema, handler=result)

    async def _permit(
        self, name: str, arguments: Json, context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        id_ = context.tool_use_id or name
        if await self._wait(id_, name, arguments, is_question=True, agent=context.agent_id):
            return PermissionResultAllow()
        self._denied.add(id_)
        return PermissionResultDeny(message=DENIED)


class MessageStream:
    """Events of the model's messages. ``calls`` gets the names of the calls by id."""

    def __init__(self, calls: dict[str, str]) -> None:
        self.is_open = False
        self._calls = calls
        self._answer: AnswerEvents  # from the first message on
        self._model = ""
        self._input: Mapping[str, int] = {}
        self._call_ids: dict[int, str] = {}

    def read(self, event: Json, ctx: RunContext) -> Sequence[BaseEvent]:
        match event:
            case {"type": "message_start", "message": message}:
                self.is_open = True
                self._answer, self._call_ids = AnswerEvents(ctx), {}
                self._model, self._input = message.get("model", "unknown"), message.get("usage") or {}
            case {"type": "message_delta", "usage": {"output_tokens": written}}:
                ctx.usage.append(usage_of(self._model, self._input, written))
            case {"type": "message_stop"}:
                self.is_open = False
            case {"type": "content_block_start", "index": at, "content_block": {"type": "tool_use"} as block}:
                self._call_ids[at] = block["id"]
                self._calls[block["id"]] = shown_name(block["name"])
                return [self._answer.call(block["id"], "", self._calls[block["id"]])]
            case {"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta"} as delta}:
                call_id = self._call_ids.get(at)
                return [] if call_id is None else [self._answer.call(call_id, delta["partial_json"])]
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}:
                return [self._answer.text(text)]
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": text}}:
                return [self._answer.reasoning(text)]
        return []


def session_of(thread: str) -> str:
    return str(uuid5(NAMESPACE_URL, thread))


def shown_name(name: str) -> str:
    """Return the name without that of its MCP server: ``mcp__SERVER__NAME``."""
    return name.split("__", 2)[2] if name.startswith("mcp__") else name


def usage_of(model: str, read: Mapping[str, int], written: int) -> TokenUsage:
    """Claude does not include cache reads and writes in the input; AG-UI does."""
    cached, stored = read.get("cache_read_input_tokens"), read.get("cache_creation_input_tokens")
    return TokenUsage(
        provider="anthropic",
        model=model,
        input_tokens=read.get("input_tokens", 0) + (cached or 0) + (stored or 0),
        output_tokens=written,
        cached_input_tokens=cached,
        cache_write_input_tokens=stored,
    )


def text_of(content: str | Sequence[Json] | None) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


# --- prompts ----------------------------------------------------------------------------------------------------------


def prompt_of(input: RunAgentInput) -> list[Json]:
    """Return what the user has said since the last answer. Raises ``AppError`` VALIDATION_ERROR."""
    said = list(takewhile(lambda message: message.role == "user", reversed(input.messages)))
    blocks = [block for message in reversed(said) for block in blocks_of(message.content)]
    if input.resume or not blocks:
        reason = "The thread does not wait for this answer." if input.resume else "There is no message to answer."
        raise validation_error(reason)
    return blocks


async def user_messages(prompt: Sequence[Json]) -> AsyncGenerator[Json, None]:
    yield {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}


def blocks_of(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for part in content or () if (block := block_of(part))] if isinstance(content, list) else []


def block_of(part: Any) -> Json | None:  # noqa: ANN401 - one of AG-UI's parts
    """Return texts, images and PDFs as the Messages API has them."""
    if part.type == "text":
        return {"type": "text", "text": part.text}
    kind = {"image": "image", "document": "document"}.get(part.type)
    if kind is None or part.source.type not in {"url", "data"}:
        return None
    source = part.source
    if source.type == "url":
        return {"type": kind, "source": {"type": "url", "url": source.value}}
    return {"type": kind, "source": {"type": "base64", "media_type": source.mime_type, "data": source.value}}
