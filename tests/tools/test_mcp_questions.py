"""Questions of MCP servers: they suspend a call, and the answers go back to the server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest
from ag_ui.core import (
    Interrupt,
    ResumeEntry,
)
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams
from msgspec.structs import replace
from pydantic import TypeAdapter
from starlette.responses import JSONResponse, Response

from agui_container.ports import RunContext, Suspension, ToolContent, ToolError, ToolSuspension
from agui_container.ports.tool import DECLINE
from agui_container.tools.mcp import open_call
from agui_container.tools.mcp.elicitation import InvalidAnswer, answer_of, question_of
from agui_container.tools.mcp.source import McpSource
from agui_container.tools.mcp.tool import CUT_OFF, McpTool
from tests.contexts import run_context
from tests.engine.doubles import eventually
from tests.tools.mcp_fixtures import SCRIPT, Rig, rigged
from tests.tools.mcp_scripted import Json, Scripted, scripted

pytestmark = pytest.mark.wire

SIZE = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
LINK = ElicitRequestURLParams(message="Sign in.", url="https://example.com/in", elicitation_id="1")


def entry(question: Interrupt, payload: object = None) -> ResumeEntry:
    return ResumeEntry(interrupt_id=question.id, status="resolved", payload=payload)


ASKED = ElicitRequestFormParams(message="Which size?", requested_schema=SIZE)
FORM = question_of(ASKED, None)
WORDS = {"action": {"type": "string"}, "word": {"type": "string", "pattern": "^(a+)+$"}}
FREE = FORM.model_copy(update={"response_schema": {"type": "object", "properties": WORDS}})
SLOW = {"word": f"{'a' * 60}!"}


@pytest.mark.parametrize(
    ("question", "payload", "action", "content"),
    [
        (FORM, {"size": 3}, "accept", {"size": 3}),
        (FORM, DECLINE, "decline", None),
        (question_of(LINK, None), None, "accept", None),
        (question_of(LINK, None), {}, "accept", None),
        (question_of(LINK, None), DECLINE, "decline", None),
        (FREE, DECLINE, "accept", DECLINE),
        (FREE, SLOW, "accept", SLOW),
        (FORM.model_copy(update={"response_schema": {"type": 7}}), {"a": "b"}, "accept", {"a": "b"}),
        (
            FORM.model_copy(update={"response_schema": {"$ref": "https://example.com/s"}}),
            {"a": "b"},
            "accept",
            {"a": "b"},
        ),
    ],
)
def test_an_answer_is_passed_on_in_the_servers_form(
    question: Interrupt, payload: object, action: str, content: object
) -> None:
    answer = answer_of(question, entry(question, payload))
    assert (answer.action, answer.content) == (action, content)


def test_a_question_has_the_schema_or_the_link_of_the_server() -> None:
    form, link = (question_of(params, "call-1") for params in (ASKED, LINK))
    assert [each.reason for each in (form, link)] == ["elicitation", "elicitation"]
    assert (form.message, form.tool_call_id, form.response_schema) == ("Which size?", "call-1", SIZE)
    assert (link.message, link.metadata) == ("Sign in.", {"url": "https://example.com/in"})


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (None, "The answer is no object."),
        ({}, "The answer is not valid: 'size' is a required property."),
        ({"size": "big"}, "The answer is not valid: size: 'big' is not of type 'integer'."),
        ({"size": 0}, "The answer is not valid: size: 0 is less than the minimum of 1."),
        ({"size": 1, "other": {"a": 1}}, "The answer has values that a form cannot have."),
    ],
)
def test_an_answer_is_checked_against_the_schema(payload: object, words: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        answer_of(FORM, entry(FORM, payload))
    assert str(caught.value) == words


STORED = TypeAdapter(Suspension)


class Asking:
    """Calls of one tool that a person answers, each as a run of its own."""

    def __init__(self, source: McpSource, name: str) -> None:
        self.source = source
        self.name = name
        self.background: list[Awaitable[object]] = []

    @property
    def context(self) -> RunContext:
        return replace(run_context(background=self.background.append), tool_call_id="call-1")

    async def tool(self) -> McpTool:
        (tool,) = [each for each in await self.source.tools_for().get() if each.spec.name == self.name]
        assert isinstance(tool, McpTool)
        return tool

    async def ask(self, **arguments: object) -> Suspension:
        with pytest.raises(ToolSuspension) as asked:
            await (await self.tool()).call(arguments, self.context)
        return stored(asked.value.suspension)

    async def answer(self, suspension: Suspension, *payloads: object) -> ToolContent:
        entries = [entry(*each) for each in zip(suspension.interrupts, payloads, strict=False)]
        return await (await self.tool()).resume(suspension, entries, self.context)

    async def end(self) -> None:
        for work in self.background:
            await work


def stored(suspension: Suspension) -> Suspension:
    return STORED.validate_json(STORED.dump_json(suspension, by_alias=True))


@pytest.fixture
async def today() -> AsyncIterator[Rig]:
    async with rigged() as rig:
        yield rig


@pytest.fixture(params=["HTTP", "process"])
async def before(request: pytest.FixtureRequest) -> AsyncIterator[Asking]:
    """A tool that asks within the call."""
    async with rigged(handshake="initialize") as rig:
        is_process = request.param == "process"
        source = McpSource(SCRIPT) if is_process else rig.source
        yield Asking(source, "ask" if is_process else "demo_buy")
        await source.aclose()


async def test_an_answer_that_is_not_valid_is_asked_for_again(today: Rig) -> None:
    suspension = await Asking(today.source, "demo_book").ask(name="Ada")
    with pytest.raises(ToolSuspension) as asked:
        await Asking(today.source, "demo_book").answer(suspension, {"size": "big"}, {"size": 4})
    again = stored(asked.value.suspension)
    assert [each.message for each in again.interrupts] == [
        "The answer is not valid: size: 'big' is not of type 'integer'. Which size?"
    ]
    assert await Asking(today.source, "demo_book").answer(again, {"size": 3}) == "Ada 3 4"


async def test_a_call_stays_open_for_the_answer_to_a_question_within_it(before: Asking) -> None:
    assert await before.answer(await before.ask(), {"size": 3}) == "3"
    assert await before.answer(await before.ask(), DECLINE) == "decline"
    await before.end()  # the server is busy until then


async def test_a_call_does_not_wait_for_ever(before: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_call, "ANSWER_SECONDS", 0.0)
    suspension = await before.ask()
    await before.end()
    with pytest.raises(ToolError, match=CUT_OFF):
        await before.answer(suspension, {"size": 3})


async def test_a_question_of_a_process_with_calls_of_several_runs_is_cancelled(process: McpSource) -> None:
    tools = {tool.spec.name: tool for tool in await process.tools_for().get()}
    waiting = asyncio.create_task(tools["wait"].call({}, replace(run_context(), run_id="other")))
    await eventually(lambda: len(process.tools_for().connection.calls) == 1)
    assert await tools["ask"].call({}, run_context()) == "cancel"
    waiting.cancel()


@pytest.mark.parametrize("beside", ["ask", "echo"])
async def test_questions_of_a_process_belong_to_the_calls_of_a_run_that_ask(beside: str, process: McpSource) -> None:
    tools = {tool.spec.name: tool for tool in await process.tools_for().get()}
    kept: list[Awaitable[object]] = []
    contexts = [replace(run_context(background=kept.append), tool_call_id=f"call-{number}") for number in (1, 2)]
    calls = [tools["ask"].call({}, contexts[0]), tools[beside].call({}, contexts[1])]
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    asked = [each for each in (first, second) if isinstance(each, ToolSuspension)]
    ids = [interrupt.tool_call_id for each in asked for interrupt in each.suspension.interrupts]
    assert ids == (["call-1", "call-2"] if beside == "ask" else ["call-1"])
    assert beside == "ask" or second == "carried out"
    await process.aclose()
    for work in kept:
        await work


async def test_a_tool_that_asks_within_its_call_names_the_setting_in_the_log(
    today: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ToolError):
        await today.call("buy")
    assert "needs the setting server=demo tool=buy handshake=initialize" in caplog.text


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        {"method": "roots/list"},
    ],
    ids=["sampling", "roots"],
)
async def test_a_tool_that_needs_a_model_or_folders_of_the_client_says_so(request_: Json) -> None:
    result: Json = {"resultType": "input_required", "inputRequests": {"a": request_}}
    async with scripted(Scripted(is_newest=True, result=result)) as rig:
        words = rf"^echo needs '{request_['method']}', which this client does not offer\.$"
        with pytest.raises(ToolError, match=words):
            await rig.call()


async def test_a_tool_that_needs_a_model_within_its_call_says_so() -> None:
    async with rigged(handshake="initialize") as rig:
        with pytest.raises(
            ToolError, match=r"^sample needs 'sampling/createMessage', which this client does not offer"
        ):
            await rig.call("sample")


async def test_a_call_that_needs_a_link_is_made_again() -> None:
    links = [{"mode": "url", "elicitationId": "1", "url": LINK.url, "message": "Sign in."}]
    error = {"code": -32042, "message": "Sign in first", "data": {"elicitations": links}}

    def refuse(id_: object) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": id_, "error": error})

    async with scripted(Scripted(refusals={"tools/call": refuse})) as rig:
        with pytest.raises(ToolSuspension) as asked:
            await rig.call()
    assert not asked.value.suspension.is_resumable
    assert [(each.reason, each.metadata) for each in asked.value.suspension.interrupts] == [
        ("oauth_consent", {"url": LINK.url})
    ]
