"""kontekst's runs and its daemon, as a client of the seed's release speaks to them."""

import json

import grpc
import pytest

from agui_container.transports.gen.kontekst import kontekst_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.conftest import Dial
from tests.grpc.kontekst_calls import RunTalk, open_run, start_run, unary
from tests.requirements import requirement
from tests.secret_search import planted
from tests.sockets.process import ServerProcess, Servers

# --- runs -------------------------------------------------------------------------------------------------------------


@requirement("kontekst.runs")
def test_a_prompt_is_answered_in_the_documented_order(channel: grpc.Channel) -> None:
    with start_run(channel, "think about it", agent_name="default") as talk:
        list(talk.rest())
    assert talk.kinds == ["started", "reasoning", "token", "turn_completed", "context_snapshot", "completed"]
    first, last = talk.seen[0].started, talk.seen[-1].completed
    assert (first.run_id, first.agent_name) == (last.run_id, "default")
    assert first.session_id
    turn = next(event.turn_completed for event in talk.seen if event.HasField("turn_completed"))
    assert turn.content == last.content == "".join(event.token.text for event in talk.seen)
    assert turn.reasoning == last.reasoning == "".join(event.reasoning.text for event in talk.seen)
    assert last.reasoning


@requirement("kontekst.asks")
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


@requirement("kontekst.asks")
def test_a_preview_comes_with_the_proposal(channel: grpc.Channel) -> None:
    with start_run(channel, call_text("write_file", path="a.txt", text="hello")) as talk:
        (call,) = talk.until("tools_proposed").calls
        assert call.preview == "a.txt: +hello"


@requirement("kontekst.asks")
def test_two_calls_are_decided_one_by_one_and_a_denial_ends_the_run(channel: grpc.Channel) -> None:
    lines = f"{call_text('echo', text='one')}\n{call_text('echo', text='two')}"
    with start_run(channel, lines) as talk:
        one, two = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=two.call_id, reason="too risky"))
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=one.call_id))
        list(talk.rest())
    kinds = [talk.kind(event) for event in talk.seen]
    behind = kinds[kinds.index("tools_proposed") + 1 :]
    assert behind == ["tool_started", "tool_completed", "tool_failed", "tools_completed", "cancelled"]
    failed = next(event.tool_failed for event in talk.seen if event.HasField("tool_failed"))
    assert failed.call_id == two.call_id
    assert "too risky" in failed.error
    session = talk.seen[0].started.session_id
    with start_run(channel, "anything else", session_id=session) as again:
        list(again.rest())
    rows = next(event.context_snapshot for event in again.seen if event.HasField("context_snapshot")).context.messages
    assert [row.role for row in rows if row.source == "history"] == ["user", "assistant", "tool", "tool"]


@requirement("kontekst.start")
def test_a_session_goes_on_and_a_snapshot_counts_its_messages(channel: grpc.Channel) -> None:
    with start_run(channel, "first words") as talk:
        list(talk.rest())
    session = talk.seen[0].started.session_id
    with start_run(channel, "second words", session_id=session) as again:
        list(again.rest())
    assert again.seen[0].started.session_id == session
    context = next(event.context_snapshot for event in again.seen if event.HasField("context_snapshot")).context
    assert (context.history_messages, context.memory_messages, context.total_messages) == (2, 2, 5)
    assert context.total_tokens == sum(row.tokens for row in context.messages) + context.tool_tokens
    assert {row.source for row in context.messages} == {"system", "history", "memory"}


@requirement("kontekst.start")
def test_a_budget_is_the_size_of_the_context(servers: Servers, dial: Dial) -> None:
    with start_run(dial(servers(AGUI_AGENT="assistant", AGUI_CONTEXT_TOKENS="5000")), "hello") as talk:
        list(talk.rest())
    context = next(event.context_snapshot for event in talk.seen if event.HasField("context_snapshot")).context
    assert context.context_size == 5000
    assert context.remaining_tokens == 5000 - context.total_tokens
    assert context.history_budget == 5000 - context.system_tokens - context.tool_tokens - context.memory_tokens


@requirement("kontekst.start")
def test_a_working_directory_reaches_the_agent(channel: grpc.Channel) -> None:
    with start_run(channel, "hello", working_dir="/srv/one/two/three four five") as talk:
        list(talk.rest())
    with start_run(channel, "hello") as bare:
        list(bare.rest())

    def system(of: RunTalk) -> int:
        return next(
            event.context_snapshot.context.system_tokens for event in of.seen if event.HasField("context_snapshot")
        )

    assert system(talk) > system(bare)


@requirement("kontekst.asks")
def test_a_cancel_in_the_place_of_a_decision_ends_the_run_and_frees_the_session(channel: grpc.Channel) -> None:
    with start_run(channel, call_text("echo", text="x")) as talk:
        talk.until("tools_proposed")
        talk.send(cancel=pb.CancelRunCommand())
        list(talk.rest())
    assert talk.kinds[-1] == "cancelled"
    with start_run(channel, "hello", session_id=talk.seen[0].started.session_id) as again:
        list(again.rest())
    assert again.kinds[-1] == "completed"


@requirement("kontekst.runs")
def test_a_client_that_says_nothing_more_gets_its_answer(channel: grpc.Channel) -> None:
    with start_run(channel, "hello").end() as talk:
        list(talk.rest())
    assert talk.kinds[-1] == "completed"


@requirement("kontekst.asks")
def test_a_client_that_can_decide_nothing_more_gets_its_run_cancelled(channel: grpc.Channel) -> None:
    with start_run(channel, call_text("echo", text="x")).end() as talk:
        list(talk.rest())
    assert talk.kinds[-1] == "cancelled"


@requirement("kontekst.asks")
def test_decisions_of_calls_that_do_not_wait_harm_nothing(channel: grpc.Channel) -> None:
    with start_run(channel, call_text("echo", text="x")) as talk:
        (call,) = talk.until("tools_proposed").calls
        talk.send(approve_tool=pb.ApproveToolCommand(call_id="nobody"))
        talk.send(deny_tool=pb.DenyToolCommand(call_id="nobody", reason="?"))
        talk.send(start=pb.StartRunCommand(prompt="again"))
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
        list(talk.rest())
    assert talk.kinds[-1] == "completed"


@requirement("kontekst.start")
def test_an_agent_that_is_not_here_fails_the_run_with_the_names_there_are(channel: grpc.Channel) -> None:
    with start_run(channel, "hello", agent_name="poet") as talk:
        list(talk.rest())
    assert talk.kinds == ["failed"]
    assert "'poet'" in talk.seen[0].failed.error
    assert "default" in talk.seen[0].failed.error


@requirement("kontekst.start")
@pytest.mark.parametrize("name", ["", "default", "assistant"])
def test_an_agent_is_found_by_the_name_in_the_settings(channel: grpc.Channel, name: str) -> None:
    with start_run(channel, "hello", agent_name=name) as talk:
        list(talk.rest())
    assert talk.kinds[-1] == "completed"
    assert talk.seen[0].started.agent_name == (name or "default")


@requirement("agents.by-name")
def test_a_client_chooses_one_of_several_agents(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(AGUI_AGENT="poet", AGUI_AGENTS="poet=tests.grpc.tools:poet,helper=assistant"))
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


@requirement("kontekst.start")
def test_an_agent_is_found_by_the_name_that_it_gives_itself(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(AGUI_AGENT="tests.grpc.tools:poet"))
    for name in ("poet", "tests.grpc.tools:poet"):
        with start_run(channel, "hello", agent_name=name) as talk:
            list(talk.rest())
        assert (talk.seen[0].started.agent_name, talk.seen[-1].completed.content) == (name, "Roses are red.")
    with start_run(channel, "hello", agent_name="assistant") as unknown:
        list(unknown.rest())
    assert unknown.kinds == ["failed"]
    assert unknown.seen[0].failed.error == (
        "There is no agent named 'assistant'; known are default, tests.grpc.tools:poet, poet."
    )


@requirement("kontekst.start")
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
    assert "sonnet" in unknown.seen[-1].failed.error


@requirement("kontekst.start")
def test_a_start_that_asks_for_nothing_fails(channel: grpc.Channel) -> None:
    with start_run(channel) as talk:
        list(talk.rest())
    assert talk.kinds == ["failed"]


@requirement("kontekst.runs", "grpc.errors")
def test_a_call_that_does_not_begin_with_start_is_refused(channel: grpc.Channel) -> None:
    with open_run(channel).send(cancel=pb.CancelRunCommand()) as talk, pytest.raises(grpc.RpcError) as refused:
        talk.next()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(refused.value.trailing_metadata())["agui-code"] == "VALIDATION_ERROR"


# --- the daemon -------------------------------------------------------------------------------------------------------


@requirement("kontekst.status")
def test_the_status_shows_real_values(server: ServerProcess, channel: grpc.Channel) -> None:
    status = unary(channel, "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)
    assert status.bind == f"127.0.0.1:{server.port}"
    assert status.started_at_rfc3339.endswith("Z")
    assert 0 <= status.uptime_seconds < 3600
    assert status.llama_server_healthy
    assert (status.llama_server_running, status.llama_server_pid) == (False, 0), "no process, and so no id"
    assert (status.model_dir, status.data_dir, status.endpoint) == ("", "", "")


@requirement("kontekst.status")
def test_the_status_tells_of_a_model_that_does_not_answer_and_of_the_database(
    servers: Servers, dial: Dial, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    url = f"http://user:{planted('password')}@127.0.0.1:1/v1"
    server = servers(
        AGUI_AGENT="assistant",
        AGUI_MODEL="openai:any",
        AGUI_OPENAI_BASE_URL=url,
        AGUI_STORE=f"sqlite:///{folder}/runs.db",
    )
    status = unary(dial(server), "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)
    assert status.endpoint == url.replace(planted("password"), "***")
    assert (status.llama_server_healthy, status.llama_server_running) == (False, False)
    assert status.data_dir == str(folder)


@requirement("kontekst.shutdown")
def test_a_shutdown_is_refused_unless_it_is_allowed(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        unary(channel, "Shutdown", pb.ShutdownRequest(), pb.ShutdownResponse)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


@requirement("kontekst.shutdown")
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
