"""Claude's command line with the scripted model: what the Claude Agent SDK says and reads on standard streams.

A session is a file of the folder where the SDK looks for it.
"""

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

Json = dict[str, Any]
NUMBERS = count(1)
OPTIONS = ("--allowedTools", "--mcp-config", "--resume", "--session-id")


class CommandLine:
    def __init__(self, options: argparse.Namespace) -> None:
        self._session = options.resume or options.session_id
        folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", re.sub(r"\W|_", "-", os.path.realpath(".")))
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{self._session}.jsonl"
        if self._file.exists() is not bool(options.resume):
            sys.exit("the session must be there to be resumed, and must not be there to be begun")
        self._allowed = (options.allowedTools or "").split(",")
        self._servers = list(json.loads(options.mcp_config or "{}").get("mcpServers", {}))
        self._hooks: Sequence[Json] = ()
        self._names: dict[str, str] = {}
        self._answers: dict[str, asyncio.Future[Any]] = {}

    def write(self, **message: object) -> None:
        sys.stdout.write(json.dumps({"session_id": self._session, "uuid": str(uuid4()), **message}) + "\n")
        sys.stdout.flush()

    async def ask(self, subtype: str, **request: object) -> Json:
        number = f"ask-{next(NUMBERS)}"
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self.write(type="control_request", request_id=number, request={"subtype": subtype, **request})
        return dict(await answer)

    async def mcp(self, server: str, method: str, **params: object) -> Json:
        message = {"jsonrpc": "2.0", "id": next(NUMBERS), "method": method, "params": params}
        answer = await self.ask("mcp_message", server_name=server, message=message)
        return dict(answer["mcp_response"]["result"])

    async def serve(self) -> None:
        reader, turn = asyncio.StreamReader(limit=1 << 24), None
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = json.loads(line)
            if message["type"] == "control_response":
                response = message["response"]
                self._answers.pop(response["request_id"]).set_result(response["response"])
            elif message["type"] == "user":
                turn = asyncio.create_task(self.answer(message["message"]))
            elif message["type"] == "control_request":
                if message["request"]["subtype"] == "initialize":
                    self._hooks = (message["request"]["hooks"] or {}).get("PreToolUse", ())
                elif turn is not None:
                    turn.cancel()
                    await asyncio.wait([turn])
                response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
                self.write(type="control_response", response=response)

    async def answer(self, message: Json) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps({"type": "user", "uuid": str(uuid4()), "message": message}) + "\n")
        self.write(type="system", subtype="init", claude_code_version="2.1.500")
        for server in self._servers:
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "cli", "version": "1"}}
            await self.mcp(server, "initialize", **about)
            for tool in (await self.mcp(server, "tools/list"))["tools"]:
                self._names[tool["name"]] = f"mcp__{server}__{tool['name']}"
        end: Json = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "is_error": False}
        result = None
        try:
            while (call := await self.speak(result)) is not None:
                result = await self.use(call)
        except httpx.HTTPError as error:
            text = f"API Error: secret: {error}"
            said = {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}
            self.write(type="assistant", message=said, error="server_error")
            end |= {"is_error": True, "result": text}
        self.write(type="result", **end)

    def prompts(self) -> list[str]:
        lines = [json.loads(line) for line in self._file.read_text().splitlines()]
        return ["".join(part["text"] for part in line["message"]["content"]) for line in lines]

    async def speak(self, result: str | None) -> Json | None:
        """Stream a message of the model. Return its call, if it has one."""
        messages = [{"role": "user", "content": text} for text in self.prompts()]
        messages += [] if result is None else [{"role": "tool", "content": result}]
        body = {"model": "scripted", "stream": True, "messages": messages}
        call = None
        self.stream("message_start", message={"model": "scripted", "usage": {"input_tokens": 3}})
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        async with (
            httpx.AsyncClient(trust_env=False, timeout=120) as http,
            http.stream("POST", url, json=body) as answer,
        ):
            async for line in answer.raise_for_status().aiter_lines():
                if not line.startswith("data: {"):
                    continue
                delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
                if text := delta.get("content"):
                    self.block({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
                for used in delta.get("tool_calls", ()):
                    name, arguments = used["function"]["name"], used["function"]["arguments"]
                    full = self._names.get(name, name)
                    call = {"type": "tool_use", "id": used["id"], "name": full, "input": json.loads(arguments)}
                    self.block({**call, "input": {}}, {"type": "input_json_delta", "partial_json": arguments})
        self.stream("message_delta", delta={}, usage={"output_tokens": 2})
        self.stream("message_stop")
        return call

    def stream(self, kind: str, **event: object) -> None:
        self.write(type="stream_event", event={"type": kind, **event})

    def block(self, block: Json, delta: Json) -> None:
        at = next(NUMBERS)
        self.stream("content_block_start", index=at, content_block=block)
        self.stream("content_block_delta", index=at, delta=delta)
        self.stream("content_block_stop", index=at)

    async def use(self, call: Json) -> str:
        result: Json
        if await self.is_allowed(call) or (decision := await self.permission(call))["behavior"] == "allow":
            _, server, name = call["name"].split("__", 2)
            result = await self.mcp(server, "tools/call", name=name, arguments=call["input"])
        else:
            result = {"content": [{"type": "text", "text": decision["message"]}], "isError": True}
        done = {"tool_use_id": call["id"], "content": result["content"], "is_error": bool(result.get("isError"))}
        self.write(type="user", message={"role": "user", "content": [{"type": "tool_result", **done}]})
        return "".join(part["text"] for part in result["content"])

    async def is_allowed(self, call: Json) -> bool:
        about = {"hook_event_name": "PreToolUse", "tool_name": call["name"], "tool_input": call["input"]}
        about["tool_use_id"] = call["id"]
        for matcher in self._hooks:
            if re.fullmatch(matcher["matcher"], call["name"]):
                (callback,) = matcher["hookCallbackIds"]
                answer = await self.ask("hook_callback", callback_id=callback, input=about, tool_use_id=call["id"])
                return bool(answer["hookSpecificOutput"]["permissionDecision"] == "allow")
        return call["name"] in self._allowed

    async def permission(self, call: Json) -> Json:
        return await self.ask("can_use_tool", tool_name=call["name"], input=call["input"], tool_use_id=call["id"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in OPTIONS:
        parser.add_argument(option)
    asyncio.run(CommandLine(parser.parse_known_args()[0]).serve())
