"""An AG-UI server as the agent, by its ASGI application: its events, questions and failures are those of the run."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from ag_ui.core import RunErrorEvent, RunFinishedEvent, StateSnapshotEvent, TextMessageContentEvent, ToolCallResultEvent
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_container import create_app
from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.loader import adapt_agent
from agui_container.agents.upstream import UpstreamOptions
from agui_container.protocol.errors import AppError
from agui_container.settings import Settings, SettingsError
from agui_container.testing import open_thread, run_agent, user_input
from tests.agents.upstream import pay_tools
from tests.agents.upstream.servers import CUT, WAIT, Answer, Item, Server, called, frame, playing, run_event, said
from tests.contexts import collect_items, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_demo import Demo, serve_app

TOOLS = "tests.agents.upstream.pay_tools:pay"


def last_role(request: dict[str, object]) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["role"])


async def test_the_server_gets_the_whole_history_and_every_field() -> None:
    server = Server(playing(*said("hello")))
    async with open_thread(server.app) as thread:
        await thread.send("first")
        await thread.send("second")
    first, second = server.requests
    assert {"state": {}, "tools": [], "context": [], "forwardedProps": {}}.items() <= first.items()
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]  # type: ignore[attr-defined]
    assert first["threadId"] == second["threadId"]


async def test_the_server_never_sees_a_thread_id_and_the_client_always_sees_its_own() -> None:
    async def show(request: dict[str, object]) -> AsyncIterator[Item]:
        yield {"type": "STATE_SNAPSHOT", "snapshot": {"user": f"thread_user_{request['threadId']}"}}

    server = Server(show)
    request = user_input("hi").model_copy(update={"thread_id": 'mine "quoted"'})
    events = await run_agent(server.app, request)
    (snapshot,) = of_type(events, StateSnapshotEvent)
    assert snapshot.snapshot == {"user": 'thread_user_mine "quoted"'}
    assert "mine" not in json.dumps(server.requests[0]["threadId"])
    assert [event.thread_id for event in of_type(events, RunFinishedEvent)] == ['mine "quoted"']


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (['data: {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m",\ndata: "delta": "over lines"}\n\n'], "over lines"),
        (["\ufeff: comment\r\n\r\n", "id: 7\n", "\n", ": ping\n\n"], ""),
        (['event: x\r\ndata:{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a\u2028b"}\r\n\r\n'], "a\u2028b"),
        (['data: {"type": "SOMETHING_NEW", "x": 1}\n\n'], ""),
        (['data: {"type": "RAW", "event": {"secret": 1}}\n\n'], ""),
    ],
    ids=["joined lines", "comments and ids", "CRLF and U+2028", "unknown type", "RAW"],
)
async def test_legal_streams_are_read(lines: list[str], text: str) -> None:
    events = await run_agent(Server(playing(*lines)).app, "hi")
    assert isinstance(events[-1], RunFinishedEvent)
    assert "".join(event.delta for event in of_type(events, TextMessageContentEvent)) == text


@pytest.mark.parametrize("media_type", [None, "text/plain"])
async def test_a_stream_may_lack_its_content_type_and_its_last_blank_line(media_type: str | None) -> None:
    async def answer(request: Request) -> Response:
        asked = await request.json()
        events = [run_event("RUN_STARTED", asked), *said("hello"), run_event("RUN_FINISHED", asked)]
        return Response("".join(map(frame, events)).rstrip(), media_type=media_type)

    events = await run_agent(Starlette(routes=[Route("/", answer, methods=["POST"])]), "hi")
    assert isinstance(events[-1], RunFinishedEvent)
    assert "".join(event.delta for event in of_type(events, TextMessageContentEvent)) == "hello"


async def test_a_web_page_in_place_of_a_stream_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    page = Route("/", lambda _: HTMLResponse("<h1>Sign in</h1>"), methods=["POST"])
    events = await run_agent(Starlette(routes=[page]), "hi")
    assert isinstance(events[-1], RunErrorEvent)
    assert "<h1>Sign in</h1>" in caplog.text


async def test_thinking_of_older_servers_is_reasoning() -> None:
    before: list[Item] = [
        {"type": "THINKING_START"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"},
    ]
    kinds = [str(event.type.value) for event in await run_agent(Server(playing(*before)).app, "hi")]
    assert kinds[1:-1] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ]


@pytest.mark.parametrize(
    ("item", "cause"),
    [
        ({"type": "RUN_ERROR", "message": "secret of the model", "code": "X"}, "secret of the model"),
        (CUT, "without a terminal event"),
        (RuntimeError("secret of the server"), "ended within its response"),
        ("data: secret garbage\n\n", "no JSON"),
        ({"type": "TEXT_MESSAGE_CONTENT", "delta": "secret"}, "TEXT_MESSAGE_CONTENT"),
    ],
    ids=["an error", "no end", "an exception", "no JSON", "no event"],
)
async def test_a_failure_is_one_sentence_and_its_cause_is_in_the_log(
    item: Item | Exception, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        events = await run_agent(Server(playing(item)).app, "hi")
    assert isinstance(events[-1], RunErrorEvent)
    assert (events[-1].code, events[-1].message) == ("AGENT_ERROR", "The agent's server failed.")
    assert cause in caplog.text


@pytest.mark.parametrize("status", [422, 503])
async def test_a_refusal_is_one_sentence_and_url_status_and_text_are_in_the_log(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_thread(settings=Settings(agent=f"tests.agents.upstream.apps:app/refused/{status}")) as thread:
        with caplog.at_level(logging.WARNING):
            events = await thread.send("hi")
    assert isinstance(events[-1], RunErrorEvent)
    assert (events[-1].code, events[-1].message) == ("AGENT_ERROR", "The agent's server failed.")
    assert f"url=http://localhost/refused/{status}" in caplog.text
    assert f"status {status}" in caplog.text
    assert "secret detail" in caplog.text


def calls_then_says(name: str, *arguments: object) -> Answer:
    """Return a server that makes these calls of a tool, and says their results."""

    async def answer(request: dict[str, object]) -> AsyncIterator[Item]:
        if last_role(request) == "tool":
            results = [message["content"] for message in request["messages"] if message["role"] == "tool"]  # type: ignore[attr-defined]
            for event in said(f"results: {', '.join(results)}"):
                yield event
        else:
            for number, each in enumerate(arguments, 1):
                for event in called(name, each, f"call-{number}"):
                    yield event

    return answer


async def test_tools_of_the_settings_run_here_and_the_server_is_asked_again() -> None:
    pay_tools.PAID.clear()
    server = Server(calls_then_says("pay", {"amount": 1}, {"amount": 2}))
    async with open_thread(server.app, Settings(tools=TOOLS)) as thread:
        events = await thread.send("pay")
        assert thread.text == "results: paid 1, paid 2"
    assert pay_tools.PAID == [1, 2]
    assert [tool["name"] for tool in server.requests[0]["tools"]] == ["pay"]  # type: ignore[attr-defined]
    assert server.requests[0]["runId"] != server.requests[1]["runId"]
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ["paid 1", "paid 2"]


@pytest.fixture
async def mcp() -> AsyncIterator[tuple[Demo, str]]:
    """An MCP server, and the setting that names it."""
    demo = Demo()
    async with serve_app(demo.server.streamable_http_app()) as port:
        yield demo, json.dumps([{"name": "demo", "url": f"http://127.0.0.1:{port}/mcp"}])


async def test_tools_of_mcp_servers_run_here_and_the_server_is_asked_again(mcp: tuple[Demo, str]) -> None:
    demo, servers = mcp
    server = Server(calls_then_says("demo_add", {"a": 1, "b": 2}))
    async with open_thread(server.app, Settings(mcp_servers=servers)) as thread:
        events = await thread.send("add")
        assert thread.text == "results: 3"
    assert demo.calls == ["add"]
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ["3"]
    (offered,) = [tool for tool in server.requests[0]["tools"] if tool["name"] == "demo_add"]  # type: ignore[attr-defined]
    assert (offered["description"], offered["parameters"]["required"]) == ("Add two numbers.", ["a", "b"])
    assert [last_role(request) for request in server.requests] == ["user", "tool"]


@pytest.mark.parametrize(
    ("approved", "calls", "text"),
    [(True, ["add"], "results: 3"), (False, [], "results: Error: the user denied this call.")],
)
async def test_a_tool_of_an_mcp_server_that_the_policy_asks_for_waits_for_its_approval(
    mcp: tuple[Demo, str], calls: list[str], text: str, *, approved: bool
) -> None:
    demo, servers = mcp
    server = Server(calls_then_says("demo_add", {"a": 1, "b": 2}))
    policy = [{"tool_pattern": "demo_*", "policy": "ask"}]
    async with open_thread(server.app, Settings(mcp_servers=servers, tool_policy=json.dumps(policy))) as thread:
        await thread.send("add")
        assert [each.tool_call_id for each in thread.interrupts] == ["call-1"]
        assert (demo.calls, len(server.requests)) == ([], 1)
        await thread.answer({"approved": approved})
        assert thread.text == text
    assert demo.calls == calls
    assert [last_role(request) for request in server.requests] == ["user", "tool"]


async def test_a_question_of_the_server_is_an_interrupt_and_gets_its_answer() -> None:
    question = {"id": "q-1", "reason": "input_required", "message": "Sure?"}

    async def ask(request: dict[str, object]) -> AsyncIterator[Item]:
        if request.get("resume"):
            for event in said("thanks"):
                yield event
        else:
            yield run_event("RUN_FINISHED", request, outcome={"type": "interrupt", "interrupts": [question]})

    server = Server(ask)
    async with open_thread(server.app) as thread:
        await thread.send("hi")
        assert [interrupt.message for interrupt in thread.interrupts] == ["Sure?"]
        await thread.answer({"sure": True})
        assert thread.text == "thanks"
    assert server.requests[1]["resume"] == [{"interruptId": "q-1", "status": "resolved", "payload": {"sure": True}}]


async def test_a_run_that_is_closed_ends_the_answer_of_the_server() -> None:
    server = Server(playing(*said("one"), WAIT))
    options = UpstreamOptions()
    stream = adapt_agent(server.app, "app", options).run(run_input("hi"), run_context())
    await anext(stream)
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()
    assert server.log == ["opened", "answered"]
    for close in options.closers:
        await close()
    assert server.log[-1] == "closed"


class Starting:
    """An application whose startup waits for ``may_start``. ``log`` has what came in which order."""

    def __init__(self, *, fails: bool = False) -> None:
        self.may_start = asyncio.Event()
        self.log: list[str] = []
        self._fails = fails
        routes = [Route("/", self._serve, methods=["POST"])]
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.log.append("starting")
        await self.may_start.wait()
        if self._fails:
            raise OSError("no database")
        self.log.append("started")
        yield

    async def _serve(self, request: Request) -> Response:
        self.log.append("asked")
        asked = await request.json()
        return Response(frame(run_event("RUN_FINISHED", asked)))


async def test_a_run_that_is_cancelled_in_the_startup_of_an_application_leaves_the_startup_to_the_next() -> None:
    starting = Starting()
    agent = adapt_agent(starting.app, "app")
    first = asyncio.create_task(collect_items(agent.run(run_input("hi"), run_context())))
    await eventually(lambda: starting.log == ["starting"])
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(collect_items(agent.run(run_input("hi"), run_context())))
    for _ in range(100):
        await asyncio.sleep(0)
    starting.may_start.set()
    await second
    assert starting.log == ["starting", "started", "asked"]


async def test_an_application_whose_startup_fails_is_started_again_and_never_asked() -> None:
    starting = Starting(fails=True)
    starting.may_start.set()
    agent = adapt_agent(starting.app, "app")
    for _ in range(2):
        with pytest.raises(AppError):
            await collect_items(agent.run(run_input("hi"), run_context()))
    assert starting.log == ["starting", "starting"]


async def test_an_application_works_on_after_its_last_event_and_after_its_response() -> None:
    log: list[str] = []

    async def work(name: str) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        log.append(name)

    async def answer(request: Request) -> Response:
        asked = await request.json()

        async def stream() -> AsyncIterator[str]:
            yield frame(run_event("RUN_FINISHED", asked))
            await work("stored")

        return StreamingResponse(stream(), media_type="text/event-stream", background=BackgroundTask(work, "told"))

    options = UpstreamOptions()
    agent = adapt_agent(Starlette(routes=[Route("/", answer, methods=["POST"])]), "app", options)
    await collect_items(agent.run(run_input("hi"), run_context()))
    for close in options.closers:
        await close()
    assert log == ["stored", "told"]


async def test_a_reader_that_waits_holds_the_server_back() -> None:
    written = 0

    async def flood(_: dict[str, object]) -> AsyncIterator[Item]:
        nonlocal written
        for written in range(10_000):
            yield {"type": "CUSTOM", "name": "n", "value": written}

    agent = adapt_agent(Server(flood).app, "app")
    stream = agent.run(run_input("hi"), run_context())
    await anext(stream)
    for _ in range(100):
        await asyncio.sleep(0)
    assert written < 100
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()


@pytest.mark.parametrize("name", ["hello.app", "mounted", "routed"])
async def test_the_only_post_route_of_an_application_is_found_in_mounts_and_routers_too(name: str) -> None:
    async with open_thread(settings=Settings(agent=f"tests.agents.upstream.apps:{name}")) as thread:
        await thread.send("hi")
        assert thread.text == "hello"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("tests.agents.upstream.apps:app", "app/agent, tests.agents.upstream.apps:app/refused/422"),
        ("tests.agents.upstream.apps:empty", "without a POST route"),
        ("tests.agents.upstream.apps:NUMBER/agent", "no ASGI application"),
        ("http://", "is no URL of an AG-UI server"),
        ("http://localhost:nine/agent", "is no URL of an AG-UI server"),
    ],
)
def test_an_agent_elsewhere_without_a_clear_address_is_refused_at_the_start(reference: str, message: str) -> None:
    with pytest.raises(AgentLoadError, match=message):
        create_app(reference)


def test_settings_of_upstream_agents_are_refused_where_there_is_none() -> None:
    with pytest.raises(SettingsError, match="AGUI_UPSTREAM_HEADERS"):
        create_app(settings=Settings(upstream_headers=("authorization",)))
