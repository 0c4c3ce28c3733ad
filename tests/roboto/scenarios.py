"""Scenarios for Roboto's client package, one function each.

Run by that package's Python: ``-m tests.roboto.scenarios NAME``. Each prints one JSON value, and the tests say what it
must be. Both generations of the package are used as they are published; only their names differ.
"""

import json
import sys
import threading

from roboto.ai import client_tool
from roboto.ai.core import AnalysisScope, ClientViewingContext
from roboto.ai.goals import DatasetSummaryAgentGoal, DatasetTriageGoal

from tests.roboto.sdk import (
    IS_OLD,
    TIMEOUT,
    AgentMessage,
    AgentSession,
    FeedbackCategory,
    FeedbackSentiment,
    blocks,
    id_of,
    message_rows,
    names,
    raised,
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


def seeded() -> object:
    """A session that begins with a conversation and with everything that a start can carry."""
    earlier = [
        AgentMessage.text("My name is Eve."),
        AgentMessage.text("Hello Eve.", role=AgentMessage.text("x").role.__class__("assistant")),
        AgentMessage.text("stream 1"),
    ]
    session = AgentSession.start(
        earlier,
        client_context=ClientViewingContext(dataset_ids=["ds_1"]),
        system_prompt="Be brief.",
        model_profile="advanced",
        org_id="og_1",
        analysis_scope=AnalysisScope(start_time=1, end_time=2),
    )
    run_session(session)
    record = send_request(f"/v1/ai/threads/{id_of(session)}")["data"]
    return {
        "messages": message_rows(session),
        "facts": [record[name] for name in ("model_profile", "org_id", "visibility", "title", "created_by")],
        "ids": {record[name] for name in ("thread_id", "session_id", "chat_id")} == {id_of(session)},
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


def mixed() -> object:
    """A tool of the server's and one of the client's in one turn, and one that this client has not declared."""

    @client_tool
    def client_recall(query: str) -> str:
        """Recall a fact."""
        return query

    calls = 'call calculate {"expression": "1+1"}\ncall client_recall {"query": "sky"}'
    session = AgentSession.start(calls, client_tools=[client_recall])
    events = run_session(session)
    return {"events": names(events), "messages": message_rows(session), "status": session.status.value}


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
    session = AgentSession.start(goals=[DatasetSummaryAgentGoal(dataset_id="ds_1")])
    failure = raised(lambda: run_session(session))
    status = session.status.value
    question = blocks(session.messages[0].content)
    session.send_text("stream 1")
    run_session(session)
    return {
        "raised": failure[0],
        "status": status,
        "question": question,
        "afterwards": session.status.value,
        "goals": [row["status"] for row in send_request(f"/v1/ai/chats/{id_of(session)}")["data"]["goals"]],
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


def refusals() -> object:
    session = AgentSession.start("stream 1")
    run_session(session)
    busy = AgentSession.start("wait 1")
    while not busy.messages[1:]:
        busy.refresh()
    found = {
        "unknown session": raised(lambda: AgentSession.from_id("ags_none")),
        "unknown message": raised(lambda: session.submit_feedback(9, FeedbackSentiment.POSITIVE)),
        "message of the user": raised(lambda: session.submit_feedback(0, FeedbackSentiment.POSITIVE)),
        "fork out of range": raised(lambda: session.fork(9)),
        "fork of what is generated": raised(lambda: busy.fork(1)),
        "feedback on what is generated": raised(lambda: busy.submit_feedback(1, FeedbackSentiment.POSITIVE)),
        "send to a busy session": raised(lambda: busy.send_text("stream 1")),
        "empty text": raised(lambda: session.send_text("")),
        "blank text": raised(lambda: AgentSession.start(" \n")),
        "unknown model": raised(lambda: AgentSession.start("stream 1", model_profile="standard")),
        "results nobody waits for": raised(lambda: session.submit_client_tool_results([result()])),
    }
    run_session(busy)
    return found


def result() -> object:
    module = __import__(f"roboto.ai.{'agent_session' if IS_OLD else 'agent_thread'}.record", fromlist=["x"])
    if not hasattr(module, "ClientToolResult"):
        module = __import__("roboto.ai.agent_thread", fromlist=["x"])
    return module.ClientToolResult(
        tool_use_id="none", tool_name="client_none", runtime_ms=1, status=module.ClientToolResultStatus.SUCCESS
    )


def failure() -> object:
    session = AgentSession.start("fail")
    events = run_session(session)
    failed = message_rows(session)
    session.send_text("stream 1")
    run_session(session)
    return {
        "events": names(events),
        "error": [[event.error_code, event.error_message] for event in events if hasattr(event, "error_code")],
        "failed": failed,
        "roles": [message.role.value for message in session.messages],
        "same": message_rows(AgentSession.from_id(id_of(session))) == message_rows(session),
    }


def other_protocols() -> object:
    """A session that is read, continued and cancelled through AG-UI's routes."""
    session = AgentSession.start("stream 1")
    run_session(session)
    thread = id_of(session)
    read = [message["role"] for message in send_request(f"/threads/{thread}")["messages"]]
    question = {"id": "u2", "role": "user", "content": "calculate 2+3"}
    send_request("/invocations", {"threadId": thread, "runId": "r2", "messages": [question]})
    session.refresh()
    continued = message_rows(session)
    session.send_text("wait 30")
    stop = threading.Thread(target=cancel, args=(thread,))
    stop.start()
    events = run_session(session)
    stop.join()
    return {
        "read": read,
        "continued": continued[2:],
        "cancelled": [event.error_code for event in events if hasattr(event, "error_code")],
        "status": [session.status.value, session.latest_message.status.value],
    }


def cancel(thread: str) -> None:
    run = None
    while run is None:
        run = send_request(f"/threads/{thread}").get("activeRunId")

    send_request(f"/runs/{run}/cancel", {})


def pinned() -> object:
    """Only the newer package has these."""
    session = AgentSession.start("stream 1")
    run_session(session)
    session.set_pinned(True)
    session.set_visibility(type(session.visibility)("org"))
    org = send_request(f"/v1/ai/threads/{id_of(session)}")["data"]
    session.set_pinned(False)
    private = send_request(f"/v1/ai/threads/{id_of(session.fork(1))}")["data"]
    unpinned = send_request(f"/v1/ai/threads/{id_of(session)}")["data"]
    return {
        "pinned": [org["visibility"], org["pinned_at"] is not None],
        "fork": [private["visibility"], private["pinned_at"]],
        "unpinned": [unpinned["visibility"], unpinned["pinned_at"]],
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


def approval() -> object:
    """A session whose agent waits for an approval, which this protocol cannot give."""
    session = AgentSession.start("what time is it")
    asked = run_session(session)
    activity = send_request(f"/v1/ai/threads/{id_of(session)}")["data"]["activity"]
    session.send_text("stream 2")
    answered = run_session(session)
    return {
        "asked": names(asked),
        "error": [[event.error_code, event.error_message] for event in asked if hasattr(event, "error_code")],
        "activity": activity,
        "answered": names(answered),
        "latest": blocks(session.latest_message.content),
        "after": [session.status.value, send_request(f"/v1/ai/threads/{id_of(session)}")["data"]["activity"]],
        "same": message_rows(AgentSession.from_id(id_of(session))) == message_rows(session),
    }


def short_run() -> object:
    """A run that is given up long before the agent is done."""
    session = AgentSession.start("wait 300")
    error = raised(lambda: session.run(timeout=1))
    run = send_request(f"/threads/{id_of(session)}")["activeRunId"]
    send_request(f"/runs/{run}/cancel", {})
    return {"raised": error[0], "is_running": run is not None}


def forked_at_call() -> object:
    """A copy that ends with a call of the server, whose result is not in it."""
    session = AgentSession.start("calculate 6*7")
    run_session(session)
    fork = session.fork(1)
    begun, status = message_rows(fork), fork.status.value
    fork.run(timeout=TIMEOUT)
    fork.send_text("stream 2")
    run_session(fork)
    return {"last": begun[-1], "status": status, "latest": blocks(fork.latest_message.content)}


def two_clients() -> object:
    """Only the newer package can drop messages, so only there both clients have all of them after a refresh."""
    one = AgentSession.start("stream 1")
    run_session(one)
    two = AgentSession.from_id(id_of(one))
    one.send_text("calculate 6*7")
    run_session(one)
    two.refresh()
    two.send_text("stream 2")
    run_session(two)
    one.refresh()
    stored = message_rows(AgentSession.from_id(id_of(one)))
    return {
        "users": [row[2] for row in stored if row[0] == "user"],
        "same": message_rows(one) == message_rows(two) == stored,
    }


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))  # noqa: T201 - what the test reads
