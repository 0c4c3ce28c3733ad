"""Goals of runs that are cancelled, or that end before their turn does."""

import pytest

from tests.behaviour.approval_tools import PAID
from tests.behaviour.client import outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import PAINT, ClientThread, answer, calls, interrupts, results
from tests.behaviour.goals import NOTE, SUM, custom_values, goal_statuses, goals
from tests.requirements import requirement

# --- ended runs ---


@requirement("goal.limit")
@pytest.mark.parametrize("settings", [{"max_steps": 2}, {"run_tokens": 20}])
async def test_a_limit_fails_the_goals_before_it_ends_the_run(
    connect_model: ConnectModel, settings: dict[str, int]
) -> None:
    thread = await connect_model(**settings)
    events = await thread.say('call achieve_note {}\ncall echo {"text": "hi"}', forwardedProps=goals(NOTE, SUM))
    assert custom_values(events, "goal.failed") == [{"type": "sum", "reason": "run_ended"}]
    assert (goal_statuses(events), outcome(events)) == ({"note": "achieved", "sum": "failed"}, "RUN_LIMIT_EXCEEDED")
    assert types(events)[-2:] == ["CUSTOM", "RUN_ERROR"]
    assert types(await thread.say("stream 1", forwardedProps={"budget": {"steps": 1}})).count("CUSTOM") == 0


@requirement("goal.model-fails")
async def test_a_model_that_fails_fails_the_goals(thread: ClientThread) -> None:
    events = await thread.say("fail", forwardedProps=goals(NOTE))
    assert (goal_statuses(events), outcome(events)) == ({"note": "failed"}, "MODEL_ERROR")
    assert goal_statuses(await thread.say("stream 1")) == {}


@requirement("goal.cancelled")
async def test_a_cancelled_run_says_nothing_more_and_leaves_no_goals(thread: ClientThread) -> None:
    body = thread.body("call achieve_note {}\ncall stick {}", forwardedProps=goals(NOTE, SUM))
    stream = await thread.client.start(body)
    while (await stream.until("CUSTOM"))["name"] != "goal.achieved":
        pass
    await thread.client.cancel(thread.id)
    events = await stream.rest()
    assert (types(events)[-1], outcome(events), custom_values(events, "goal.failed")) == (
        "RUN_FINISHED",
        "cancelled",
        [],
    )
    assert "CUSTOM" not in types(await thread.say("stream 1"))


# --- continued turns ---


@requirement("goal.client-tool")
async def test_goals_stay_open_while_a_clients_call_is_open(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    events = await thread.say("call paint {}\ncall achieve_note {}", forwardedProps=goals(NOTE, SUM))
    assert (goal_statuses(events), outcome(events)) == ({"note": "achieved", "sum": "pending"}, "success")
    thread.result(calls(events)["paint"], "dry")
    events = await thread.say()
    (declared,) = custom_values(events, "goals.declared")
    assert [row["status"] for row in declared["goals"]] == ["achieved", "pending"]
    assert [value["goals"] for value in custom_values(events, "goals.prompted")] == [["sum"]] * 3
    assert (goal_statuses(events), outcome(events)) == ({"note": "achieved", "sum": "failed"}, "success")
    assert "CUSTOM" not in types(await thread.say("stream 1"))


@requirement("goal.approval")
async def test_goals_stay_open_while_somebody_must_approve(thread: ClientThread) -> None:
    events = await thread.say('call pay {"amount": 5}', forwardedProps=goals(NOTE))
    (interrupt,) = interrupts(events)
    assert goal_statuses(events) == {"note": "pending"}
    assert goal_statuses(await thread.say("well?")) == {"note": "pending"}
    thread.messages.pop()
    events = await thread.resume(answer(interrupt, approved=True))
    assert (PAID[thread.id], goal_statuses(events)) == ([5], {"note": "achieved"})
    assert text(events).endswith("The result of achieve_note is The goal note is achieved.")


@requirement("goal.refused")
async def test_a_run_that_is_refused_leaves_the_goals_as_they_were(thread: ClientThread) -> None:
    (interrupt,) = interrupts(await thread.say('call pay {"amount": 5}', forwardedProps=goals(NOTE)))
    events = await thread.resume(answer(interrupt, approved="yes"))
    assert (goal_statuses(events), outcome(events)) == ({"note": "pending"}, "VALIDATION_ERROR")
    assert goal_statuses(await thread.resume(answer(interrupt, approved=True))) == {"note": "achieved"}


ASK = '[{"tool_pattern": "achieve_*", "policy": "ask"}]'
DENY = '[{"tool_pattern": "achieve_*", "policy": "deny"}]'


@requirement("goal.policy")
async def test_a_goal_that_must_be_approved_is_achieved_by_the_answer(connect_model: ConnectModel) -> None:
    thread = await connect_model(tool_policy=ASK)
    events = await thread.say('call achieve_sum {"amount": 5}', forwardedProps=goals(SUM))
    (interrupt,) = interrupts(events)
    assert goal_statuses(events) == {"sum": "pending"}
    events = await thread.resume(answer(interrupt, approved=True, editedArgs={"amount": 6}))
    (achieved,) = custom_values(events, "goal.achieved")
    assert (achieved["data"], outcome(events)) == ({"amount": 6}, "success")


@requirement("goal.policy")
async def test_a_goal_that_may_not_be_achieved_fails(connect_model: ConnectModel) -> None:
    thread = await connect_model(tool_policy=DENY, goal_prompts=1)
    events = await thread.say("stream 1", forwardedProps=goals(NOTE))
    assert results(events) == ["Error: this tool is not allowed."]
    assert goal_statuses(events) == {"note": "failed"}


@requirement("goal.again")
async def test_goals_that_are_declared_again_stand_where_they_stood(connect_model: ConnectModel) -> None:
    thread = await connect_model(goal_prompts=1)
    thread.tools = [PAINT]
    events = await thread.say("call paint {}\ncall achieve_note {}", forwardedProps=goals(NOTE, SUM))
    thread.result(calls(events)["paint"], "dry")
    other = {**NOTE, "type": "other"}
    events = await thread.say(forwardedProps=goals(NOTE, {**SUM, "schema": {"type": "object"}}, other))
    (declared,) = custom_values(events, "goals.declared")
    assert [row["status"] for row in declared["goals"]] == ["achieved", "pending", "pending"]
    assert goal_statuses(events) == {"note": "achieved", "sum": "achieved", "other": "achieved"}


@requirement("goal.dropped")
async def test_an_empty_list_removes_the_goals(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    events = await thread.say("call paint {}", forwardedProps=goals(NOTE))
    thread.result(calls(events)["paint"], "dry")
    events = await thread.say(forwardedProps=goals())
    assert custom_values(events, "goals.declared") == [{"goals": []}]
    assert text(events) == "The result of paint is dry."
    assert "CUSTOM" not in types(await thread.say("stream 1"))


@requirement("goal.client-tool")
async def test_the_goals_of_a_thread_are_its_own(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    await thread.say("call paint {}", forwardedProps=goals(NOTE))
    session = thread.client.with_headers(x_amzn_bedrock_agentcore_runtime_session_id="s" * 40)
    events = await session.run({**thread.body("stream 1"), "runId": "another"})
    assert "CUSTOM" not in types(events)
