"""The official client as it was before AG-UI 1.0, which CopilotKit and assistant-ui use: no end may break it."""

from tests.official.judge import Json, Judge, Turn
from tests.official.test_live import CONFIRM
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

THEN = {"runId": "r2", "tools": [CONFIRM], "answer": "yes, do"}


def converse(judge: Judge, assistant: ServerProcess, said: str, *turns: Json) -> list[Turn]:
    """A conversation by the older client, in which nothing is rejected."""
    messages = [{"id": "u1", "role": "user", "content": said}]
    held = judge.run(assistant.invocations, turns, threadId=said, initialMessages=messages, older=True)
    assert [(turn.error, turn.failed, turn.printed) for turn in held.turns] == [(None, None, [])] * len(turns)
    return list(held.turns)


@requirement("run.older")
def test_a_client_tool_is_left_pending_and_its_result_continues_the_thread(
    judge: Judge, assistant: ServerProcess
) -> None:
    called, answered = converse(judge, assistant, 'call confirm {"q": 1}', {"runId": "r1", "tools": [CONFIRM]}, THEN)
    assert called.types[-1] == answered.types[-1] == "RUN_FINISHED"
    assert answered.text == "The result of confirm is yes, do."


@requirement("run.older")
def test_a_cancelled_run_ends(judge: Judge, assistant: ServerProcess) -> None:
    cancel = {"command": {"type": "cancel", "threadId": "wait 60"}}
    (turn,) = converse(judge, assistant, "wait 60", {"runId": "r1", "meanwhile": {"after": 3, "body": cancel}})
    assert turn.types[-1] == "RUN_FINISHED"


@requirement("run.older")
def test_reasoning_tools_and_subagents_come_as_they_are(judge: Judge, assistant: ServerProcess) -> None:
    for said in ("think about rain", "calculate 6*7", "delegate calculate 6*7"):
        (turn,) = converse(judge, assistant, said, {"runId": "r1"})
        assert turn.types[-1] == "RUN_FINISHED"
