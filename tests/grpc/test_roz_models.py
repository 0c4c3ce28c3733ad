"""Requests of a roz client as a model behind the chat completions API gets them."""

from typing import Any

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.openai import OpenAIModel
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.grpc.callers import serving_callers
from tests.grpc.roz_calls import schema
from tests.models.openai.server import OpenAIResponse, OpenAIServer, says, speaks, sse, wire_server
from tests.requirements import requirement

CALL = {"index": 0, "id": "c1", "function": {"name": "shell", "arguments": "{}"}}
CALLS_SHELL = OpenAIResponse(
    sse({"choices": [{"index": 0, "delta": {"tool_calls": [CALL]}}]}, says("", "tool_calls"), "[DONE]")
)


async def model_requests(message: roz.UserMessage, *results: roz.ToolResult) -> list[list[dict[str, Any]]]:
    """Answer a message, and the calls of a shell with the results. Returns the messages of each request to the model.

    Each result needs no id.
    """
    async with wire_server() as wire:
        wire.gives(*(CALLS_SHELL for _ in results), speaks("Done."))
        model = OpenAIModel("m", wire.url)
        try:
            await answer(model, message, *results)
        finally:
            await model.aclose()
        return sent_messages(wire)


async def answer(model: OpenAIModel, message: roz.UserMessage, *results: roz.ToolResult) -> None:
    async with serving_callers(Assistant(model=model)) as callers:
        session = await callers.connect("me").begin_session(tools=[schema("shell")])
        await session.send(user_message=message)
        for result in results:
            while (response := await session.call.receive()) is not None and not response.HasField("tool_request"):
                pass
            assert response is not None
            result.tool_call_id = response.tool_request.tool_call_id
            await session.send(tool_result=result)
        assert await session.answer() == "Done."


def sent_messages(wire: OpenAIServer) -> list[list[dict[str, Any]]]:
    """Return the messages of each request, without the system text."""
    bodies: list[Any] = [request.json for request in wire.requests]
    return [[message for message in body["messages"] if message["role"] != "system"] for body in bodies]


@requirement("roz.tools")
async def test_the_model_reads_a_failure_once_with_its_exit_code() -> None:
    failed = roz.ToolResult(success=False, result="no such file", exit_code=2, truncated=True)
    requests = await model_requests(roz.UserMessage(content="list"), failed)
    assert requests[-1][-1]["content"] == "Error: no such file\n[exit code 2]\n[the output was truncated]"


@requirement("roz.tools")
async def test_the_model_reads_the_exit_code_of_a_success_without_output() -> None:
    requests = await model_requests(roz.UserMessage(content="list"), roz.ToolResult(success=True, exit_code=3))
    assert requests[-1][-1]["content"] == "[exit code 3]"


@requirement("roz.start")
async def test_the_model_reads_text_files_that_are_sent_as_binary_with_their_labels() -> None:
    source = roz.BinaryContent(mime_type="text/x-rust", data=b"fn main() {}")
    message = roz.UserMessage(content="explain", context=[roz.ContentBlock(binary=source, label="src/main.rs")])
    ((said,),) = await model_requests(message)
    assert said["content"] == "explain\nsrc/main.rs:\nfn main() {}"
