"""kontekst's runs and its daemon, as a client of the seed's release speaks to them."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from agui_container.ports.tool import MAX_REASON
from agui_container.protocols.gen import kontekst_pb2 as pb
from agui_container.web.caller_middleware import SESSION_HEADER
from tests.auth.rpcs import call_rpc
from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import GrpcClient, Run, call_text
from tests.server.sockets.process import ServerProcess

pytestmark = pytest.mark.wire

LARGEST_SIZE = 2**31 - 1
POET = "tests.protocols.grpc.tools:poet"


async def finished(clients: Clients, prompt: str = "", **start: Any) -> Run:
    run = await clients.start_run(prompt, **start)
    await run.rest()
    return run


async def test_a_client_that_says_nothing_more_gets_its_answer(clients: Clients) -> None:
    run = await clients.start_run("hello")
    await run.end()
    assert (await run.rest())[-1] == "completed"


@pytest.mark.parametrize("length", [MAX_REASON, 100 * MAX_REASON])
async def test_a_reason_of_any_length_denies_a_call(clients: Clients, length: int) -> None:
    run = await clients.start_run(call_text("echo", text="x"))
    (call,) = (await run.until("tools_proposed")).calls
    await run.send(deny_tool=pb.DenyToolCommand(call_id=call.call_id, reason="n" * length))
    assert (await run.until("tool_failed")).error.count("n" * MAX_REASON) == 1
    assert (await run.rest())[-1] == "cancelled"


async def test_a_client_chooses_one_of_several_agents() -> None:
    async with serving_clients(agent="poet", agents=[f"poet={POET}", "helper=assistant"]) as clients:
        for name, text in (("", "Roses are red."), ("poet", "Roses are red."), ("helper", "hello world, ")):
            run = await finished(clients, "stream 1", agent_name=name)
            assert run.all("completed")[0].content == text
        run = await clients.start_run(call_text("echo", text="x"), agent_name="helper")
        await run.until("tools_proposed")
        unknown = await finished(clients, "hello", agent_name="cook")
        (failed,) = unknown.all("failed")
        assert failed.error == "There is no agent named 'cook'; known are default, poet, helper."


async def test_a_skill_takes_the_place_of_a_prompt(tmp_path: Path) -> None:
    folder = tmp_path / "haiku"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: haiku\ndescription: Three lines.\n---\n\nWrite three lines.\n")
    async with serving_clients(skills=str(tmp_path)) as clients:
        run = await finished(clients, skill=pb.SkillInvocation(name="haiku", arguments="about rain"))
        assert run.kinds[-1] == "completed"
        unknown = await finished(clients, skill=pb.SkillInvocation(name="sonnet"))
        (failed,) = unknown.all("failed")
        assert failed.error.startswith("start.skill.name: there is no skill named 'sonnet'")


async def context_of(agent: str) -> pb.ContextSnapshot:
    async with serving_clients(agent=agent) as clients:
        (snapshot,) = (await finished(clients, "hello")).all("context_snapshot")
    context: pb.ContextSnapshot = snapshot.context
    return context


async def test_the_window_of_the_model_is_the_size_of_the_context_and_the_sums_of_the_page_hold() -> None:
    context = await context_of("tests.protocols.grpc.tools:windowed")
    assert context.context_size == 1_000
    fixed = context.system_tokens + context.tool_tokens + context.memory_tokens
    assert context.total_tokens == fixed + context.history_tokens
    assert context.remaining_tokens == context.context_size - context.total_tokens
    assert context.history_budget == context.context_size - fixed
    assert context.total_messages == 1 + context.history_messages + context.memory_messages
    for source, tokens in (
        ("system", context.system_tokens),
        ("history", context.history_tokens),
        ("memory", context.memory_tokens),
    ):
        assert sum(row.tokens for row in context.messages if row.source == source) == tokens


async def test_the_context_of_an_agent_that_does_not_report_it_is_not_exhausted() -> None:
    context = await context_of(POET)
    assert (context.context_size, context.remaining_tokens, context.total_tokens) == (LARGEST_SIZE, LARGEST_SIZE, 0)


async def status_of(client: GrpcClient) -> pb.GetStatusResponse:
    return await client.ask("/kontekst.DaemonService/GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)


async def test_the_status_shows_real_values(clients: Clients) -> None:
    status = await status_of(clients)
    assert status.bind.endswith(f":{clients.port}")
    assert status.started_at_rfc3339.endswith("Z")
    assert 0 <= status.uptime_seconds < 3600
    assert status.llama_server_healthy
    assert (status.llama_server_running, status.llama_server_pid) == (False, 0), "no process, and so no id"
    assert (status.model_dir, status.data_dir, status.endpoint) == ("", "", "")


@contextlib.contextmanager
def model_endpoint() -> Iterator[str]:
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        endpoint.listen()
        yield f"http://127.0.0.1:{endpoint.getsockname()[1]}/v1"


async def test_the_model_is_healthy_while_its_endpoint_accepts_connections() -> None:
    with contextlib.ExitStack() as listening:
        url = listening.enter_context(model_endpoint())
        async with serving_clients(model="openai:any", openai_base_url=url) as clients:
            status = await status_of(clients)
            assert (status.endpoint, status.llama_server_healthy) == (url, True)
            listening.close()
            assert not (await status_of(clients)).llama_server_healthy


@pytest.mark.processes
def test_a_shutdown_ends_the_process_in_order_but_not_for_one_session_of_several() -> None:
    with ServerProcess(AGUI_AGENT="assistant", AGUI_GRPC_SHUTDOWN="on") as server:
        shutdown, session = "/kontekst.DaemonService/Shutdown", {SESSION_HEADER: "s" * 33}
        url = f"http://127.0.0.1:{server.port}"
        assert call_rpc(url, shutdown, b"", session) == (grpc.StatusCode.PERMISSION_DENIED, b"")
        status, reply = call_rpc(url, shutdown, b"", {})
        assert (status, b"shutting down" in reply) == (grpc.StatusCode.OK, True)
        assert server.wait() == 0
