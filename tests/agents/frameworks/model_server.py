"""The scripted model behind the HTTP APIs of OpenAI (chat completions and responses) and Gemini.

A reader that goes away ends the answer, as with a real model. The last user message is the script: ``scripted_model``.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.agents.frameworks.scripted_model import Use, answer

Json = dict[str, Any]
NUMBERS = count(1)
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else ""


async def pieces(said: Sequence[str], result: str | None) -> tuple[list[str | Use], AsyncIterator[str | Use]]:
    """Return the first piece, if there is one, and the others. Raises what the model raises first."""
    script = answer(said, result)
    first = await anext(script, None)
    return ([] if first is None else [first]), script


Encode = Callable[[str | Use | None], list[Json]]
"""One piece as events of a dialect; None is the end."""


def frames(events: Sequence[Json]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


async def respond(
    said: Sequence[str], result: str | None, encode: Encode, whole: Callable[..., Json], **how: bool
) -> Response:
    try:
        first, script = await pieces(said, result)
    except RuntimeError as error:
        return JSONResponse({"error": {"message": str(error)}}, 400)
    if not how["streams"]:
        return JSONResponse(whole([*first, *[piece async for piece in script]]))

    async def stream() -> AsyncIterator[str]:
        for piece in first:
            yield frames(encode(piece))
        async for piece in script:
            yield frames(encode(piece))
        yield frames(encode(None))
        if how["done"]:
            yield "data: [DONE]\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


# --- OpenAI -----------------------------------------------------------------------------------------------------------


def openai_call(use: Use) -> Json:
    function = {"name": use.tool, "arguments": use.arguments}
    return {"id": f"call-{next(NUMBERS)}", "type": "function", "function": function}


async def chat_completions(request: Request) -> Response:
    body = await request.json()
    messages = [
        each for each in body["messages"] if each["role"] != "user" or text_of(each["content"])
    ]  # AG2's are empty
    said = [text_of(message["content"]) for message in messages if message["role"] == "user"]
    result = text_of(messages[-1]["content"]) if messages[-1]["role"] == "tool" else None
    head = {"id": f"chat-{next(NUMBERS)}", "created": 1, "model": body["model"]}
    used = False

    def encode(piece: str | Use | None) -> list[Json]:
        nonlocal used
        delta: Json = {"role": "assistant"}
        if isinstance(piece, Use):
            used = True
            delta["tool_calls"] = [{"index": 0, **openai_call(piece)}]
        elif piece is not None:
            delta["content"] = piece
        reason = ("tool_calls" if used else "stop") if piece is None else None
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        usage = USAGE if reason else None
        return [{**head, "object": "chat.completion.chunk", "choices": [choice], "usage": usage}]

    def whole(answered: Sequence[str | Use]) -> Json:
        message: Json = {"role": "assistant", "content": "".join(each for each in answered if isinstance(each, str))}
        calls = [openai_call(each) for each in answered if isinstance(each, Use)]
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}

    return await respond(said, result, encode, whole, streams=bool(body.get("stream")), done=True)


async def responses(request: Request) -> Response:
    body = await request.json()
    asked = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    said = [text_of(item["content"]) for item in asked if item.get("role") == "user"]
    said = said or [""]  # only the result of a tool, where the client says the response to which it belongs
    result = text_of(asked[-1]["output"]) if asked[-1].get("type") == "function_call_output" else None
    head = {"id": f"resp-{next(NUMBERS)}", "object": "response", "created_at": 1, "model": body["model"]}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    output: list[Json] = []

    def item_of(piece: str | Use) -> Json:
        if isinstance(piece, Use):
            call = openai_call(piece)
            return {"id": f"fc-{call['id']}", "type": "function_call", "call_id": call["id"], **call["function"]}
        part = {"type": "output_text", "text": piece, "annotations": []}
        return {"id": f"msg-{next(NUMBERS)}", "type": "message", "role": "assistant", "content": [part]}

    def done() -> Json:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, **details}
        return {**head, "status": "completed", "output": output, "usage": usage}

    def encode(piece: str | Use | None) -> list[Json]:
        if piece is None:
            return [{"type": "response.completed", "sequence_number": next(NUMBERS), "response": done()}]
        item = item_of(piece)
        output.append({**item, "status": "completed"})
        at = {"output_index": len(output) - 1, "item_id": item["id"]}
        empty_field: Json = {"arguments": ""} if isinstance(piece, Use) else {"content": []}
        added = item | empty_field
        if isinstance(piece, Use):
            deltas: list[Json] = [{"type": "response.function_call_arguments.delta", "delta": piece.arguments}]
        else:
            empty = {"type": "output_text", "text": "", "annotations": []}
            deltas = [{"type": "response.content_part.added", "content_index": 0, "part": empty}]
            deltas.append({"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []})
        events = [{"type": "response.output_item.added", "item": {**added, "status": "in_progress"}}, *deltas]
        events.append({"type": "response.output_item.done", "item": output[-1]})
        return [{"sequence_number": next(NUMBERS), **at, **event} for event in events]

    def whole(answered: Sequence[str | Use]) -> Json:
        output.extend({**item_of(each), "status": "completed"} for each in answered)
        return done()

    return await respond(said, result, encode, whole, streams=bool(body.get("stream")), done=False)


# --- Gemini -----------------------------------------------------------------------------------------------------------


def gemini_result(part: Mapping[str, Any]) -> str | None:
    found = part.get("functionResponse")
    if found is None:
        return None
    response = found["response"]
    return str(response.get("result", response.get("output", json.dumps(response))))


async def generate_content(request: Request) -> Response:
    contents = (await request.json())["contents"]
    asked = [part["text"] for c in contents if c.get("role") == "user" for part in c["parts"] if "text" in part]
    result = gemini_result(contents[-1]["parts"][-1])

    def event(parts: Sequence[Json], **fields: object) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **fields}
        usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}

    def part_of(piece: str | Use) -> Json:
        if isinstance(piece, Use):
            return {"functionCall": {"name": piece.tool, "args": json.loads(piece.arguments)}}
        return {"text": piece}

    def encode(piece: str | Use | None) -> list[Json]:
        return [event([], finishReason="STOP") if piece is None else event([part_of(piece)])]

    def whole(answered: Sequence[str | Use]) -> Json:
        return event([part_of(each) for each in answered], finishReason="STOP")

    streams = request.url.path.endswith("streamGenerateContent")
    return await respond(asked, result, encode, whole, streams=streams, done=False)


APP = Starlette(
    routes=[
        Route("/v1/chat/completions", chat_completions, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
        Route("/v1beta/models/{model:path}", generate_content, methods=["POST"]),
    ]
)


@contextmanager
def model_server() -> Iterator[dict[str, str]]:
    """Serve the models. Gives the environment variables with which the clients of frameworks find them."""
    server = uvicorn.Server(uvicorn.Config(APP, port=0, log_level="error", timeout_graceful_shutdown=1))
    socket = server.config.bind_socket()
    thread = Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{socket.getsockname()[1]}"
    try:
        yield {
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "GOOGLE_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": url,
        }
    finally:
        server.should_exit = True
        thread.join()
