"""kontekst's runs and its daemon, as a client of the seed's release speaks to them."""

import json

import grpc
import pytest

from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.protocols.conftest import Dial
from tests.protocols.grpc.client import call_text
from tests.protocols.kontekst.calls import start_run, unary
from tests.server.sockets.process import ServerProcess, Servers

pytestmark = pytest.mark.wire


def test_every_call_is_proposed_and_runs_when_it_is_approved(channel: grpc.Channel) -> None:
    with start_run(channel, call_text("echo", text="ahoy")) as talk:
        proposed = talk.until("tools_proposed")
        (call,) = proposed.calls
        assert (call.name, json.loads(call.arguments_json), call.preview) == ("echo", {"text": "ahoy"}, "")
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
        list(talk.rest())
    assert talk.kinds == [
        *("started", "turn_completed", "context_snapshot", "tools_proposed", "tool_started", "tool_completed"),
        *("tools_completed", "token", "turn_completed", "context_snapshot", "completed"),
    ]
    completed = next(event.tool_completed for event in talk.seen if event.HasField("tool_completed"))
    assert (completed.call_id, completed.output) == (call.call_id, "ahoy")
    assert "ahoy" in talk.seen[-1].completed.content


def test_a_client_that_says_nothing_more_gets_its_answer(channel: grpc.Channel) -> None:
    with start_run(channel, "hello").end() as talk:
        list(talk.rest())
    assert talk.kinds[-1] == "completed"


def test_a_client_chooses_one_of_several_agents(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(AGUI_AGENT="poet", AGUI_AGENTS="poet=tests.protocols.grpc.tools:poet,helper=assistant"))
    for name, text in (("", "Roses are red."), ("poet", "Roses are red."), ("helper", "hello world, ")):
        with start_run(channel, "stream 1", agent_name=name) as talk:
            list(talk.rest())
        assert talk.seen[-1].completed.content == text
    with start_run(channel, "call current_time {}", agent_name="helper") as talk:
        (call,) = talk.until("tools_proposed").calls
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
        list(talk.rest())
    assert talk.kinds[-1] == "completed"
    with start_run(channel, "hello", agent_name="cook") as unknown:
        list(unknown.rest())
    assert unknown.seen[0].failed.error == "There is no agent named 'cook'; known are default, poet, helper."


def test_a_skill_takes_the_place_of_a_prompt(
    servers: Servers, dial: Dial, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("skills") / "haiku"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: haiku\ndescription: Three lines.\n---\n\nWrite three lines.\n")
    channel = dial(servers(AGUI_AGENT="assistant", AGUI_SKILLS=str(folder.parent)))
    with start_run(channel, skill=pb.SkillInvocation(name="haiku", arguments="about rain")) as talk:
        list(talk.rest())
    assert talk.kinds[-1] == "completed"
    with start_run(channel, skill=pb.SkillInvocation(name="sonnet")) as unknown:
        list(unknown.rest())
    assert unknown.kinds[-1] == "failed"
    assert unknown.seen[-1].failed.error.startswith("start.skill.name: there is no skill named 'sonnet'")


def test_the_status_shows_real_values(server: ServerProcess, channel: grpc.Channel) -> None:
    status = unary(channel, "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)
    assert status.bind == f"127.0.0.1:{server.port}"
    assert status.started_at_rfc3339.endswith("Z")
    assert 0 <= status.uptime_seconds < 3600
    assert status.llama_server_healthy
    assert (status.llama_server_running, status.llama_server_pid) == (False, 0), "no process, and so no id"
    assert (status.model_dir, status.data_dir, status.endpoint) == ("", "", "")


def test_a_shutdown_ends_the_process_in_order_but_not_for_one_session_of_several(dial: Dial) -> None:
    with ServerProcess(AGUI_AGENT="assistant", AGUI_GRPC_SHUTDOWN="on") as server:
        channel = dial(server)
        session = [("x-amzn-bedrock-agentcore-runtime-session-id", "s" * 33)]
        with pytest.raises(grpc.RpcError) as refused:
            unary(channel, "Shutdown", pb.ShutdownRequest(), pb.ShutdownResponse, metadata=session)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        answer = unary(channel, "Shutdown", pb.ShutdownRequest(), pb.ShutdownResponse)
        assert "shutting down" in answer.message
        assert server.wait() == 0
