"""Goals of one run: declared, achieved, asked for again, failed."""

import pytest

from tests.behaviour.client import outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import PAINT, ClientThread, calls, results
from tests.behaviour.goals import NOTE, SUM, custom_values, goal_statuses, goals
from tests.engine.doubles import Json
from tests.requirements import requirement

GIVE_SUM = 'call achieve_sum {"amount": 5}'


@requirement("goal.achieved")
async def test_data_that_fits_achieves_a_goal_and_the_model_goes_on(thread: ClientThread) -> None:
    events = await thread.say(GIVE_SUM, forwardedProps=goals(SUM))
    (declared,), (achieved,) = custom_values(events, "goals.declared"), custom_values(events, "goal.achieved")
    assert declared == {"goals": [{"type": "sum", "tool": "achieve_sum", "status": "pending"}]}
    assert achieved == {"type": "sum", "toolCallId": calls(events)["achieve_sum"], "data": {"amount": 5}}
    assert (types(events)[:2], goal_statuses(events)) == (["RUN_STARTED", "CUSTOM"], {"sum": "achieved"})
    assert results(events) == ["The goal sum is achieved."]
    assert (text(events), outcome(events)) == ("The result of achieve_sum is The goal sum is achieved.", "success")
    assert len(await thread.model.prompts()) == 2


@requirement("goal.told")
async def test_the_model_is_told_of_the_goals_and_has_a_tool_for_each(connect_model: ConnectModel) -> None:
    thread = await connect_model(system_prompt="Be kind.")
    await thread.say(GIVE_SUM, forwardedProps=goals(SUM, NOTE))
    first = (await thread.model.prompts())[0]
    assert first["system"].startswith("Be kind.\n\n## Goals\n\n")
    assert first["system"].endswith("achieve_sum, achieve_note.")
    assert first["tools"][-2:] == ["achieve_sum", "achieve_note"]


@requirement("goal.prompted")
async def test_a_model_that_stops_too_early_is_asked_again(thread: ClientThread) -> None:
    events = await thread.say("stream 1", forwardedProps=goals(NOTE))
    assert custom_values(events, "goals.prompted") == [{"goals": ["note"], "prompt": 1, "prompts": 3}]
    assert (goal_statuses(events), outcome(events)) == ({"note": "achieved"}, "success")
    heard = (await thread.model.prompts())[1]["messages"]
    assert [message["role"] for message in heard] == ["user", "assistant", "user"]
    assert heard[-1]["content"].startswith("Achieve the goals: achieve_note.")
    assert text(await thread.say("stream 2")) == "hello world, " * 2


@requirement("goal.failed", "goal.wrong")
async def test_a_goal_that_is_not_achieved_in_time_fails_and_the_conversation_goes_on(
    connect_model: ConnectModel,
) -> None:
    thread = await connect_model(goal_prompts=2)
    events = await thread.say("stream 1", forwardedProps=goals(NOTE, SUM))
    assert [value["goals"] for value in custom_values(events, "goals.prompted")] == [["note", "sum"], ["sum"]]
    assert custom_values(events, "goal.failed") == [{"type": "sum", "reason": "given_up"}]
    assert (goal_statuses(events), outcome(events)) == ({"note": "achieved", "sum": "failed"}, "success")
    assert types(events)[-2:] == ["CUSTOM", "RUN_FINISHED"]
    events = await thread.say("stream 1")
    assert (text(events), types(events).count("CUSTOM")) == ("hello world, ", 0)


@requirement("goal.wrong")
@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("{}", "'amount' is a required property"),
        ('{"amount": 0}', "'amount': 0 is less than the minimum of 1"),
        ('{"amount": "5"}', "'amount': '5' is not of type 'integer'"),
        ('{"amount": 5, "to": "me"}', "Additional properties are not allowed ('to' was unexpected)"),
    ],
)
async def test_data_that_does_not_fit_is_an_error_that_says_why(
    connect_model: ConnectModel, data: str, fault: str
) -> None:
    thread = await connect_model(goal_prompts=0)
    events = await thread.say(f"call achieve_sum {data}", forwardedProps=goals(SUM))
    assert results(events) == [f"Error: achieve_sum: {fault}."]
    assert goal_statuses(events) == {"sum": "failed"}


@requirement("goal.several")
async def test_several_goals_are_achieved_side_by_side(thread: ClientThread) -> None:
    events = await thread.say(
        f'{GIVE_SUM}\ncall echo {{"text": "hi"}}\ncall achieve_note {{}}', forwardedProps=goals(NOTE, SUM)
    )
    assert goal_statuses(events) == {"note": "achieved", "sum": "achieved"}
    assert results(events) == ["The goal sum is achieved.", "hi", "The goal note is achieved."]
    assert custom_values(events, "goals.prompted") == []


@requirement("goal.once")
async def test_the_data_that_was_given_first_counts(thread: ClientThread) -> None:
    events = await thread.say(f'{GIVE_SUM}\ncall achieve_sum {{"amount": 6}}', forwardedProps=goals(SUM))
    (achieved,) = custom_values(events, "goal.achieved")
    assert achieved["data"] == {"amount": 5}
    assert results(events)[1] == "Error: the goal sum is achieved already; the data that was given first counts."


@requirement("goal.alone")
async def test_goals_may_be_all_that_is_asked(thread: ClientThread) -> None:
    events = await thread.say(forwardedProps=goals(NOTE))
    assert (goal_statuses(events), custom_values(events, "goals.prompted")) == ({"note": "achieved"}, [])
    first = (await thread.model.prompts())[0]["messages"]
    assert [message["content"].split(".")[0] for message in first] == ["Achieve the goals: achieve_note"]


@requirement("goal.none")
@pytest.mark.parametrize("forwarded", [{}, {"goals": None}])
async def test_without_goals_nothing_is_told_and_nobody_is_asked_again(thread: ClientThread, forwarded: Json) -> None:
    events = await thread.say("stream 1", forwardedProps=forwarded)
    assert "CUSTOM" not in types(events)
    (prompt,) = await thread.model.prompts()
    assert "Goals" not in prompt["system"]


LONG = {"type": "object", "description": "x" * 20_000}
SPOTTED = {"type": "object", "properties": {f"p{at}": {"allOf": [{"pattern": f"{at}"}]} for at in range(9)}}


@requirement("goal.invalid")
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("note", "forwardedProps.goals: Input should be a valid list."),
        ([7], "forwardedProps.goals.0: Input should be an object."),
        ([{"type": "note"}], "forwardedProps.goals.0.schema: Field required."),
        ([NOTE, {**SUM, "name": "x"}], "forwardedProps.goals.1.name: Extra inputs are not permitted."),
        ([NOTE, NOTE], "forwardedProps.goals.1.type: another goal has the type 'note'."),
        ([{**SUM, "type": "a b"}], "forwardedProps.goals.0.type: String should match"),
        ([{**NOTE, "schema": {"type": "array"}}], "forwardedProps.goals.0.schema.type: must be 'object', "),
        ([{**NOTE, "schema": LONG}], "forwardedProps.goals: the schemas have more than 20000 bytes as JSON."),
        (
            [{**NOTE, "schema": SPOTTED}, SUM | {"schema": SPOTTED}],
            "forwardedProps.goals: the schemas have more than 16 patterns.",
        ),
    ],
)
async def test_a_goal_with_a_bad_field_is_refused_by_its_name(
    thread: ClientThread, declared: object, message: str
) -> None:
    events = await thread.say("stream 1", forwardedProps={"goals": declared})
    assert (types(events), outcome(events)) == (["RUN_STARTED", "RUN_ERROR"], "VALIDATION_ERROR")
    assert events[-1]["message"].startswith(message)
    assert await thread.model.prompts() == []


@requirement("goal.names")
@pytest.mark.parametrize("whose", ["client", "server"])
async def test_a_goal_whose_tool_has_another_tools_name_is_refused(connect_model: ConnectModel, whose: str) -> None:
    thread = await connect_model(tools="tests.behaviour.approval_tools:namesakes")
    thread.tools = [{**PAINT, "name": "achieve_note"}] if whose == "client" else []
    events = await thread.say("stream 1", forwardedProps=goals(NOTE if whose == "client" else SUM))
    assert outcome(events) == "VALIDATION_ERROR"
    assert events[-1]["message"].startswith("forwardedProps.goals: there is another tool named 'achieve_")


@requirement("goal.subagents")
async def test_a_subagent_has_no_goals(connect_model: ConnectModel) -> None:
    thread = await connect_model(goal_prompts=0)
    events = await thread.say("delegate call achieve_note {}", forwardedProps=goals(NOTE))
    inside = next(event for event in events if event["type"] == "TOOL_CALL_RESULT" and "subagentRunId" in event)
    assert inside["content"] == "Error: there is no tool named 'achieve_note'."
    assert goal_statuses(events) == {"note": "failed"}


@requirement("goal.capabilities")
async def test_the_capabilities_say_how_many_goals_there_may_be(connect_model: ConnectModel) -> None:
    thread = await connect_model(goal_prompts=1)
    capabilities = await thread.client.command({"command": {"type": "capabilities"}})
    assert capabilities["capabilities"]["custom"]["goals"] == {"max": 16, "prompts": 1}
