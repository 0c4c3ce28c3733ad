"""The same model against a real server: llama.cpp's, in a process of its own, offline.

It has no wheels and compiles for minutes, so it is installed by hand; ``llama_server.py`` says how.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Tool

from agui_container.models.openai import OpenAIModel, OpenAIOptions, RetryPolicy
from agui_container.models.tool_schemas import wire_name
from agui_container.ports import Prompt
from agui_container.protocol.errors import ErrorCode
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in
from tests.ports import free_port

PYTHON = os.environ.get("LLAMA_PYTHON")
SCRIPT = Path(__file__).with_name("llama_server.py")
SWITCH = Tool(
    name="lights.switch",
    description="Switch the lights.",
    parameters={"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
)

pytestmark = pytest.mark.skipif(PYTHON is None, reason="LLAMA_PYTHON names no Python with llama-cpp-python")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = str(free_port())
    command = [str(PYTHON), str(SCRIPT), str(tmp_path_factory.mktemp("llama") / "tiny.gguf"), port]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        assert any("Uvicorn running" in line for line in server.stderr)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.communicate()


async def test_llama_streams_text(url: str) -> None:
    model = OpenAIModel("tiny", url, options=OpenAIOptions(body={"max_tokens": 20, "seed": 1}))
    given, failure = await read_deltas(model.stream(PROMPT))
    await model.aclose()
    assert failure is None
    assert text_in(given)
    assert given[-1]["stop"] in ("length", "end")


async def test_llama_calls_a_tool(url: str) -> None:
    choice = {"type": "function", "function": {"name": wire_name(SWITCH.name)}}
    model = OpenAIModel("tiny", url, options=OpenAIOptions(body={"max_tokens": 60, "tool_choice": choice}))
    given, failure = await read_deltas(model.stream(Prompt("", PROMPT.messages, [SWITCH])))
    await model.aclose()
    assert failure is None
    calls: list[Any] = [delta["call"] for delta in given if "call" in delta]
    assert [name for _, _, name in calls if name] == [SWITCH.name]
    assert isinstance(json.loads("".join(arguments for _, arguments, _ in calls))["on"], bool)
    assert given[-1] == {"stop": "tools"}


async def test_llama_says_no(url: str) -> None:
    model = OpenAIModel("tiny", url, options=OpenAIOptions(body={"max_tokens": "many"}))
    _, failure = await read_deltas(model.stream(PROMPT))
    await model.aclose()
    assert failure is not None
    assert failure.code in (ErrorCode.MODEL_REJECTED, ErrorCode.MODEL_ERROR)


async def test_llama_gives_nothing_for_a_prompt_that_is_too_long(url: str) -> None:
    # It begins a stream before it looks at the prompt, and then drops the stream without a word.
    model = OpenAIModel("tiny", url, retry_policy=RetryPolicy(retries=0))
    _, failure = await read_deltas(model.stream(Prompt("word " * 1000, PROMPT.messages)))
    await model.aclose()
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_UNAVAILABLE
