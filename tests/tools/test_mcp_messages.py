"""Lists of tools and results of calls that are malformed in part: the good part counts, and what happened is said."""

import json
import math
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from ag_ui.core import DataSource, ImagePart, TextPart

from agui_container.ports import ToolContent, ToolError
from agui_container.tools.mcp import source, transport
from agui_container.tools.mcp.messages import removal_note
from tests.contexts import run_context
from tests.tools.mcp_scripted import ECHO, ERRORS, RESULTS_WITH_ERROR, Json, Scripted, scripted, text, too_large

# --- lists ------------------------------------------------------------------------------------------------------------

SCHEMA: Json = {"type": "object"}
BAD_TOOLS: dict[str, object] = {
    "no schema": {"name": "bad"},
    "a schema that is null": {"name": "bad", "inputSchema": None},
    "a schema of a list": {"name": "bad", "inputSchema": {"type": "array"}},
    "properties that are no object": {"name": "bad", "inputSchema": {"type": "object", "properties": [1]}},
    "a name that is a number": {"name": 7, "inputSchema": SCHEMA},
    "no name": {"inputSchema": SCHEMA},
    "a string": "bad",
    "null": None,
}
GOOD_TOOLS: dict[str, Json] = {
    "annotations that are a string": {"annotations": "read only"},
    "an output schema that is a string": {"outputSchema": "object"},
    "icons without an address": {"icons": [{}]},
    "a title that is a number": {"title": 1},
    "a description that is null": {"description": None},
    "meta that is a list": {"_meta": []},
    "a schema without a type": {"inputSchema": {"properties": {}}},
    "a schema that may be null": {"inputSchema": {"type": ["object", "null"]}},
}


@pytest.mark.parametrize("bad", BAD_TOOLS.values(), ids=BAD_TOOLS)
async def test_a_malformed_tool_is_left_out_and_named(bad: object, caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(Scripted(pages=lambda _: {"tools": [ECHO, bad]})) as rig:
        assert await rig.names() == ["echo"]
        assert await rig.call() == "carried out"
    name = "bad" if isinstance(bad, dict) and bad.get("name") == "bad" else "#1"
    assert f"malformed MCP tools left out server=demo tools={name}" in caplog.text


@pytest.mark.parametrize("fields", GOOD_TOOLS.values(), ids=GOOD_TOOLS)
async def test_a_tool_with_a_malformed_field_that_is_not_used_is_kept(fields: Json) -> None:
    async with scripted(Scripted(pages=lambda _: {"tools": [{**ECHO, **fields}]})) as rig:
        assert await rig.names() == ["echo"]


def _page(*, tools: int, cursor: object) -> Json:
    return {"tools": [{**ECHO, "name": f"echo{cursor}"} for _ in range(tools)], "nextCursor": cursor}


LISTS: dict[str, tuple[Callable[[object], Json], list[str]]] = {
    "an empty cursor": (lambda _: _page(tools=1, cursor=""), ["echo"]),
    "a cursor that is a number": (lambda _: _page(tools=1, cursor=2), ["echo2"]),
    "a cursor that repeats": (lambda _: _page(tools=1, cursor="a"), ["echoa", "echoa"]),
    "cursors in a circle": (lambda at: _page(tools=1, cursor="b" if at == "a" else "a"), ["echoa", "echob", "echoa"]),
    "an empty page": (lambda at: {"tools": [ECHO]} if at == "a" else _page(tools=0, cursor="a"), ["echo"]),
}


@pytest.mark.parametrize(("pages", "names"), LISTS.values(), ids=LISTS)
async def test_a_list_ends_at_a_cursor_that_leads_nowhere_and_not_at_an_empty_page(
    pages: Callable[[object], Json], names: list[str]
) -> None:
    async with scripted(Scripted(pages=pages)) as rig:
        assert await rig.names() == names
        assert await rig.call() == "carried out"


async def test_a_list_without_end_is_cut_and_kept(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_PAGES", 5)
    counter = iter(range(10_000))

    def pages(at: object) -> Json:
        return {**_page(tools=0, cursor=f"{next(counter)}"), **({"tools": [ECHO]} if at is None else {})}

    async with scripted(Scripted(pages=pages)) as rig:
        assert await rig.names() == ["echo"]
        assert await rig.names() == ["echo"]
        assert rig.server.methods.count("tools/list") == source.MAX_PAGES
    assert "MCP tool list truncated server=demo tools=1" in caplog.text


# --- results ----------------------------------------------------------------------------------------------------------

IMAGE: Json = {"type": "image", "data": "cGl4ZWxz", "mimeType": "image/png"}
RESULTS: dict[str, tuple[Json, ToolContent]] = {
    "an unknown kind": ({"content": [text("a"), {"type": "chart", "data": 1}]}, f"a\n{removal_note(1)}"),
    "no kind": ({"content": [text("a"), {"text": "b"}, None]}, f"a\n{removal_note(2)}"),
    "an image without a type": ({"content": [text("a"), {"type": "image", "data": "AA=="}]}, f"a\n{removal_note(1)}"),
    "a resource without an address": (
        {"content": [{"type": "resource", "resource": {"text": "x"}}, text("a")]},
        f"a\n{removal_note(1)}",
    ),
    "a link without a name": (
        {"content": [text("a"), {"type": "resource_link", "uri": "https://example.com"}]},
        f"a\n{removal_note(1)}",
    ),
    "only an unknown kind": ({"content": [{"type": "chart"}]}, removal_note(1)),
    "an unknown kind and structured content": (
        {"content": [{"type": "chart"}], "structuredContent": {"a": 1}},
        f'{{"a":1}}\n{removal_note(1)}',
    ),
    "structured content alone": ({"structuredContent": {"a": 1}}, '{"a":1}'),
    "a structured number without an end": ({"structuredContent": {"a": math.inf}}, '{"a":null}'),
    "a list as structured content": ({"content": [], "structuredContent": [1]}, "[1]"),
    "content that is null": ({"content": None, "structuredContent": {"a": 1}}, '{"a":1}'),
    "content that is a string": ({"content": "a"}, "a"),
    "malformed annotations": ({"content": [{**text("a"), "annotations": "loud"}]}, "a"),
    "malformed meta": ({"content": [text("a")], "_meta": 1}, "a"),
    "an error that is null": ({"content": [text("a")], "isError": None}, "a"),
    "an image beside it": (
        {"content": [IMAGE, {"type": "chart"}]},
        [ImagePart(source=DataSource(value="cGl4ZWxz", mime_type="image/png")), TextPart(text=removal_note(1))],
    ),
}


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(("result", "content"), RESULTS.values(), ids=RESULTS)
async def test_a_result_is_told_without_its_malformed_part(
    result: Json, content: ToolContent, *, as_events: bool
) -> None:
    async with scripted(Scripted(result=result, as_events=as_events)) as rig:
        assert await rig.call() == content


def nested(levels: int) -> Json:
    return {"a": nested(levels - 1)} if levels else {}


FAILURES: dict[str, tuple[Json, str]] = {
    "structured content": ({"content": [], "isError": True, "structuredContent": {"reason": "x"}}, '{"reason":"x"}'),
    "structured content alone": ({"isError": True, "structuredContent": {"reason": "x"}}, '{"reason":"x"}'),
    "an image": ({"content": [IMAGE], "isError": True, "structuredContent": {"reason": "x"}}, '{"reason":"x"}'),
    "text": ({"content": [text("No.")], "isError": True, "structuredContent": {"reason": "x"}}, "No."),
    "nothing": ({"content": [], "isError": True}, "the tool gave no reason."),
    "no content at all": ({}, "echo was carried out, but its result cannot be read."),
    "a kind of result of another version": (
        {"resultType": "task", "content": "a"},
        "echo was carried out, but its result cannot be read.",
    ),
    "more levels than a parser reads": (
        {"content": [text("a")], "structuredContent": nested(300)},
        "echo was carried out, but its result cannot be read.",
    ),
}


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(("result", "words"), FAILURES.values(), ids=FAILURES)
async def test_a_failure_has_the_servers_reason_and_no_words_of_a_parser(
    result: Json, words: str, *, as_events: bool
) -> None:
    async with scripted(Scripted(result=result, as_events=as_events)) as rig:
        with pytest.raises(ToolError) as caught:
            await rig.call()
    assert str(caught.value) == words


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(("sent", "words"), ERRORS.values(), ids=ERRORS)
async def test_a_malformed_error_is_a_failed_call(sent: str, words: str, *, as_events: bool) -> None:
    async with scripted(Scripted(answer=sent, as_events=as_events)) as rig:
        with pytest.raises(ToolError) as caught:
            await rig.call()
        assert str(caught.value) == words
        rig.server.answer = ""
        assert await rig.call() == "carried out"
        assert rig.server.methods.count("initialize") == 1


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("sent", RESULTS_WITH_ERROR.values(), ids=RESULTS_WITH_ERROR)
async def test_an_error_that_is_empty_leaves_the_result(sent: str, *, as_events: bool) -> None:
    async with scripted(Scripted(answer=sent, as_events=as_events)) as rig:
        assert await rig.call() == "carried out"


async def test_an_error_over_several_lines_is_read_as_one() -> None:
    body = '{\n  "jsonrpc": "2.0",\n  "id": ID,\n  "error": "No access."\n}\n'
    async with scripted(Scripted(answer=body)) as rig:
        with pytest.raises(ToolError, match=r"^No access\.$"):
            await rig.call()


@pytest.mark.parametrize(
    ("as_events", "can_resume"), [(False, False), (True, False), (True, True)], ids=["json", "events", "resumable"]
)
async def test_a_result_over_the_limit_is_said_to_be_too_large(
    monkeypatch: pytest.MonkeyPatch, *, as_events: bool, can_resume: bool
) -> None:
    monkeypatch.setattr(transport, "MAX_MESSAGE_BYTES", 10_000)
    server = Scripted(result={"content": [text("x" * 9_000)]}, as_events=as_events, can_resume=can_resume)
    async with scripted(server, timeout=2.0) as rig:
        assert await rig.call() == "x" * 9_000
        rig.server.result = {"content": [text("x" * 11_000)]}
        with pytest.raises(ToolError, match=r"^echo was carried out, but its result is too large"):
            await rig.call()
        rig.server.result = {"content": [text("a")]}
        assert await rig.call() == "a"
        assert rig.server.methods.count("initialize") == 1


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("digits", [400, 5_000])
async def test_integers_that_are_too_large_are_null(digits: int, *, as_events: bool) -> None:
    schema = {"type": "object", "properties": {"n": {"maximum": 10**400}}}
    server = Scripted(answer=too_large(digits), pages=lambda _: {"tools": [{**ECHO, "inputSchema": schema}]})
    server.as_events = as_events
    async with scripted(server) as rig:
        (tool,) = await rig.source.tools(run_context())
        assert tool.spec.parameters == {"type": "object", "properties": {"n": {"maximum": None}}}
        assert await rig.call() == '{"n":null,"m":[null,1]}'


# --- halves of symbols ------------------------------------------------------------------------------------------------

HALF_TEXT = "cut \ud83d, \ude00, whole \U0001f600, \ud83d\U0001f600\ude00, escaped \\ud83d \\\ud83d\n\ud83d"
WHOLE_TEXT = "cut \ufffd, \ufffd, whole \U0001f600, \ufffd\U0001f600\ufffd, escaped \\ud83d \\\ufffd\n\ufffd"

WITH_HALVES: dict[str, tuple[Json, str]] = {
    "text": ({"content": [text(HALF_TEXT)]}, WHOLE_TEXT),
    "a block beside others": ({"content": [text("a"), text("\udfff"), text("b")]}, "a\n\ufffd\nb"),
    "structured content": ({"structuredContent": {"\ud83d": ["\ude00"]}}, '{"\ufffd":["\ufffd"]}'),
    "a link": (
        {"content": [{"type": "resource_link", "uri": "https://example.com", "name": "\ud83d"}]},
        "[\ufffd](https://example.com)",
    ),
    "a field that is not used": ({"content": [text("a")], "_meta": {"\ud83d": "\ud83d"}}, "a"),
}


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(("result", "content"), WITH_HALVES.values(), ids=WITH_HALVES)
async def test_halves_of_symbols_in_a_result_are_replaced(result: Json, content: str, *, as_events: bool) -> None:
    async with scripted(Scripted(result=result, as_events=as_events)) as rig:
        assert await rig.call() == content


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"isError": True, "content": [text(HALF_TEXT)]}, None),
        ({}, {"code": -32000, "message": HALF_TEXT, "data": ["\ud83d"]}),
    ],
    ids=["result", "error"],
)
async def test_halves_of_symbols_in_a_failure_are_replaced(
    result: Json, error: Json | None, *, as_events: bool
) -> None:
    async with scripted(Scripted(result=result, error=error, as_events=as_events)) as rig:
        with pytest.raises(ToolError) as caught:
            await rig.call()
    assert str(caught.value) == WHOLE_TEXT


@pytest.mark.parametrize("as_events", [False, True], ids=["json", "events"])
async def test_halves_of_symbols_in_a_list_lose_no_tool(*, as_events: bool) -> None:
    schema = {"type": "object", "properties": {"\ud83d": {"enum": ["\ude00"], "description": HALF_TEXT}}}
    odd = {"name": "odd", "title": "\ud83d", "description": HALF_TEXT, "inputSchema": schema}
    pages: Json = {"tools": [ECHO, odd, {**ECHO, "name": "cut\ud83d"}]}
    async with scripted(Scripted(pages=lambda _: pages, as_events=as_events)) as rig:
        echo, repaired, renamed = [tool.spec for tool in await rig.source.tools(run_context())]
    assert (echo.name, repaired.name, renamed.name) == ("echo", "odd", "cut\ufffd")
    assert repaired.description == WHOLE_TEXT
    properties = {"\ufffd": {"enum": ["\ufffd"], "description": WHOLE_TEXT}}
    assert repaired.parameters == {"type": "object", "properties": properties}


class Chunks(httpx2.AsyncByteStream):
    """A body in chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


@pytest.mark.parametrize("is_events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CR LF", "CR"])
async def test_halves_of_symbols_are_replaced_wherever_the_body_is_cut(end: str, *, is_events: bool) -> None:
    lines = [f"data: {json.dumps(HALF_TEXT)}", "", f"data: {json.dumps({'a': HALF_TEXT})}", "", ": the end"]
    body = end.join(lines).encode()
    whole = body.replace(json.dumps(HALF_TEXT).encode(), json.dumps(WHOLE_TEXT).encode())
    cuts = [(body[:at], body[at:]) for at in range(len(body))]
    for chunks in [*cuts, tuple(body[at : at + 1] for at in range(len(body)))]:
        stream = transport.CheckedStream(Chunks(*chunks), lambda: b"", is_events=is_events)
        assert b"".join([chunk async for chunk in stream]) == whole
