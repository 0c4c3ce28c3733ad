"""Scenarios for Roboto's client package, one function each.

Run by that package's Python: ``-m tests.protocols.roboto.scenarios NAME``. Each prints one JSON value, and the tests
say what it must be. Both generations of the package are used as they are published; only their names differ.
"""

import json
import sys

from roboto.ai import client_tool
from roboto.ai.goals import DatasetSummaryAgentGoal, DatasetTriageGoal

from tests.protocols.roboto.sdk import (
    IS_OLD,
    TIMEOUT,
    AgentSession,
    FeedbackCategory,
    FeedbackSentiment,
    RobotoAgentGoalsFailedException,
    blocks,
    goal_statuses,
    id_of,
    message_rows,
    names,
    run_session,
    send_request,
    tokens,
)


def conversation() -> object:
    session = AgentSession.start("stream 3")
    first = run_session(session)
    session.send_text("calculate 6*7")
    second = list(session.events(timeout=TIMEOUT))
    again = AgentSession.from_id(id_of(session))
    empty = AgentSession.from_id(id_of(session), load_messages=False)
    held = len(empty.messages)
    return {
        "first": names(first),
        "second": names(second),
        "output": next(event.output for event in second if hasattr(event, "output")),
        "status": session.status.value,
        "messages": message_rows(session),
        "same": message_rows(again) == message_rows(session) == message_rows(empty.refresh()),
        "empty": held,
        "latest": blocks(session.latest_message.content),
        "transcript": session.transcript.splitlines()[1:],
    }


def tools() -> object:
    @client_tool
    def client_recall(query: str) -> str:
        """Recall a fact."""
        return f"blue {query}"

    @client_tool
    def client_facts() -> dict[str, int]:
        """Recall many facts."""
        return {"facts": 2}

    @client_tool
    def client_broken(query: str) -> str:
        """Fail."""
        raise ValueError(query)

    session = AgentSession.start('call client_recall {"query": "sky"}', client_tools=[client_recall])
    success = run_session(session)
    session.send_text("call client_facts\ncall client_broken", client_tools=[client_facts, client_broken])
    run_session(session)
    session.send_text('call client_broken {"query": "out of order"}')
    failure = run_session(session)
    session.unregister_client_tool("client_recall")
    session.send_text('call client_recall {"query": "sky"}')
    unknown = run_session(session)
    return {
        "success": [names(success), blocks(session.messages[3].content)],
        "outputs": [event.output for event in (*success, *failure, *unknown) if hasattr(event, "output")],
        "successes": [event.success for event in (*success, *failure, *unknown) if hasattr(event, "output")],
        "roles": [message.role.value for message in session.messages],
        "same": message_rows(AgentSession.from_id(id_of(session))) == message_rows(session),
    }


def goals_achieved() -> object:
    summary = DatasetSummaryAgentGoal(dataset_id="ds_1", summary_format_spec_prompt="Two sentences.")
    triage = DatasetTriageGoal(dataset_id="ds_1", label_vocabulary={"good": "All is well.", "bad": "It is not."})
    decisions = [
        {"label": label, "applies": label == "good", "justification": "It is so.", "confidence": 0.9}
        for label in ("good", "bad")
    ]
    calls = (
        'call achieve_dataset_summary {"summary": "A short drive."}\n'
        f"call achieve_dataset_triage {json.dumps({'label_decisions': decisions})}"
    )
    session = AgentSession.start(calls, goals=[summary, triage])
    run_session(session)
    rows = send_request(f"/v1/ai/chats/{id_of(session)}")["data"]["goals"]
    results = [] if IS_OLD else [goal.result.model_dump(mode="json") for goal in session.goals]
    return {
        "status": session.status.value,
        "goals": [[row["goal_type"], row["status"], row["message_sequence_num"]] for row in rows],
        "declared": [row["goal_data"]["dataset_id"] for row in rows],
        "summary": [result.get("summary") for result in results][:1],
        "labels": [row["label"] for result in results[1:] for row in result["label_decisions"]],
    }


def goals_failed() -> object:
    session = AgentSession.start("stream 1", goals=[DatasetSummaryAgentGoal(dataset_id="ds_1")])
    begun, raised = goal_statuses(session), ""
    try:
        run_session(session)
    except RobotoAgentGoalsFailedException as error:
        raised = type(error).__name__
    again = AgentSession.from_id(id_of(session))
    session.send_text("stream 1")
    run_session(session)
    return {
        "begun": begun,
        "raised": raised,
        "again": [again.status.value, goal_statuses(again)],
        "next": session.status.value,
    }


def feedback_and_fork() -> object:
    session = AgentSession.start("stream 1")
    run_session(session)
    session.send_text("calculate 1+1")
    run_session(session)
    first = session.submit_feedback(1, FeedbackSentiment.POSITIVE)
    again = session.submit_feedback(1, FeedbackSentiment.NEGATIVE, [FeedbackCategory.OTHER], notes=" Too short. ")
    fork = session.fork(1)
    begun = message_rows(fork)
    fork.send_text("stream 2")
    run_session(fork)
    record = send_request(f"/v1/ai/threads/{id_of(fork)}")["data"]
    return {
        "feedback": [again.sentiment.value, [it.value for it in again.categories], again.notes],
        "replaced": [first.feedback_id == again.feedback_id, first.created == again.created],
        "fork": begun == message_rows(session)[:2],
        "origin": record["forked_from_session_id"] == id_of(session),
        "upto": record["forked_from_message_sequence_num"],
        "grown": [len(fork.messages), len(AgentSession.from_id(id_of(session)).messages)],
    }


def events_created() -> object:
    """Only the newer package has this kind of goal, and typed results."""
    from roboto.ai.goals import CreateEventsGoal  # noqa: PLC0415 - see above

    goal = CreateEventsGoal(
        dataset_id="ds_1", event_vocabulary={"stop": "It stands."}, tag_vocabulary={"wet": "It rains."}
    )
    event = {"name": "stop", "start_time": 10, "end_time": 20, "tags": ["wet"], "target_id": "ds_1"}
    session = AgentSession.start(f"call achieve_create_events {json.dumps({'events': [event]})}", goals=[goal])
    run_session(session)
    (achieved,) = session.goals
    return {
        "type": type(achieved.result).__name__,
        "events": [[it.name, it.start_time, it.end_time, it.tags, it.target_id] for it in achieved.result.events],
        "status": [session.status.value, achieved.status.value],
    }


def skill_invoked() -> object:
    """Only the newer package invokes skills. A skill is more text for the model than the words that ask for it."""
    invoked, bare, unknown = (AgentSession.start("stream 1") for _ in range(3))
    for session in (invoked, bare, unknown):
        run_session(session)
    invoked.invoke_skill("greet")
    bare.send_text("Use the skill greet.")
    for session in (invoked, bare):
        run_session(session)
    unknown.invoke_skill("sing")
    errors = [event.error_message for event in run_session(unknown) if hasattr(event, "error_code")]
    return {
        "questions": [blocks(session.messages[2].content) for session in (invoked, bare)],
        "more": tokens(invoked) - tokens(bare),
        "same": message_rows(AgentSession.from_id(id_of(invoked))) == message_rows(invoked),
        "unknown": errors,
    }


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))  # noqa: T201 - what the test reads
