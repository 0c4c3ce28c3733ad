"""Golden files of the translators: AG-UI events in, messages of each protocol out, and the answers of clients back.

A file of ``golden`` is a conversation. ``runs`` has the events of each run, and the answers of the clients of roz and
kontekst to what a run asks for. The other members are what the translators make of it: for roz and kontekst the
messages of each run, and ``answers`` in AG-UI's words; for Roboto the messages of the session at the end.
``python -m tests.protocols.conversation.test_golden`` writes them again, for a change that is meant.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import EventType, ToolMessage, UserMessage
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from agui_container.protocols.conversation.events import RUN_ENDS, Completed, Outcome, outcome_of
from agui_container.protocols.conversation.pending import CALL_EVENTS, Answer, PendingCalls
from agui_container.protocols.conversation.translator import Cancellation, Translator
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.protocols.kontekst.translator import KontekstTranslator
from agui_container.protocols.roboto.messages import session_messages
from agui_container.protocols.roboto.requests import Facts, ToolSpec
from agui_container.protocols.roboto.turns import LiveMessages
from agui_container.protocols.roz.options import PermissionRule
from agui_container.protocols.roz.run_inputs import tools_by_name
from agui_container.protocols.roz.server_messages import RozEncoder
from agui_container.protocols.roz.translator import RozTranslator

FOLDER = Path(__file__).with_name("golden")
FILES = sorted(FOLDER.glob("*.json"))
CLIENT_TOOL = "client_move"
"""Tool that clients of roz and Roboto run in the golden files. A client of kontekst has none."""

Json = dict[str, Any]
AnyTranslator = Translator[Any, Any, Any]


def as_json(message: Message) -> Json:
    found: Json = MessageToDict(message, preserving_proto_field_name=True)
    return found


def answer_json(answer: Answer) -> Json:
    if isinstance(answer, ToolMessage):
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"id"})
    fields = {"callId": answer.call_id, "verdict": answer.verdict.name, "reason": answer.reason}
    return {**fields, "editedArgs": answer.edited_arguments}


class Conversation:
    """A conversation as the loop has it: what is fed, asked, answered, settled and ended, in order."""

    def __init__(
        self, translator: AnyTranslator, request: Callable[[], Message], client_tools: Sequence[str] = ()
    ) -> None:
        self._translator = translator
        self._request = request
        self._pending = PendingCalls(dict.fromkeys(client_tools, 60_000))
        self._outcome: Outcome = Completed()
        self.answers: list[Json] = []

    def play(self, runs: Iterable[Json], client: str) -> list[list[Json]]:
        out = [[as_json(it) for it in self._run(run, client)] for run in runs]
        out[-1] += [as_json(it) for it in self._translator.end(self._outcome)]
        return out

    def _run(self, run: Json, client: str) -> list[Any]:
        messages: list[Any] = []
        for event in run["events"]:
            kind = EventType(event["type"])
            messages += self._translator.feed(kind, event)
            if kind in CALL_EVENTS:
                self._pending.feed(kind, event)
            if kind in RUN_ENDS:
                self._outcome = outcome_of(kind, event)
                messages += self._translator.ask(self._pending) if self._pending else []
        return messages + self._answer(run.get(client, ()))

    def _answer(self, requests: Iterable[Json]) -> list[Any]:
        for request in requests:
            for answer in self._translator.answers(ParseDict(request, self._request())):
                assert not isinstance(answer, Cancellation)
                assert self._pending.add(answer)
        answers = self._pending.answers or ()
        self.answers += map(answer_json, answers)
        self._pending.clear()
        return list(self._translator.settle(answers)) if answers else []


def roz_conversation() -> Conversation:
    numbers, tools = count(1), tools_by_name([roz.ToolSchema(name=CLIENT_TOOL)])
    encoder = RozEncoder(lambda: f"e{next(numbers)}", lambda: 100.0)
    rules = [PermissionRule("pay", "ask", "physical", "money")]
    translator = RozTranslator(encoder, "m1", tools, rules, lambda: 100.0)
    return Conversation(translator, roz.SessionRequest, [CLIENT_TOOL])


def roboto_messages(runs: Iterable[Json]) -> list[Json]:
    live = LiveMessages([UserMessage(id="u", content="Go.")])
    for run in runs:
        results = [{"type": "TOOL_CALL_RESULT", "messageId": "r", **result} for result in run.get("results", ())]
        for event in [*run["events"], *results]:
            live.feed(json.dumps(event).encode())
    facts = Facts(tools=[ToolSpec(name=CLIENT_TOOL)])
    rows = [it.json() for it in session_messages(live.messages, facts, 0.0)]
    return [{name: value for name, value in row.items() if name != "created"} for row in rows]


def translations(runs: list[Json]) -> Json:
    session, run = roz_conversation(), Conversation(KontekstTranslator("r", "s", "default"), kontekst.RunCommand)
    both = session.play(runs, "roz")
    made: Json = {
        "roz 0.2": [[it for it in messages if "session_event" not in it] for messages in both],
        "roz 1.0": [[it for it in messages if "session_event" in it] for messages in both],
    }
    made["kontekst"] = run.play(runs, "kontekst")
    made["answers"] = {"roz": session.answers, "kontekst": run.answers}
    made["roboto"] = roboto_messages(runs)
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_conversation_is_translated_as_its_golden_file_says(file: Path) -> None:
    golden: Json = json.loads(file.read_text())
    runs = golden.pop("runs")
    assert translations(runs) == golden


def golden_text(value: object, depth: int = 0) -> str:
    """Return a golden file with one event, answer or message per line."""
    space, is_list = "  " * depth, isinstance(value, list) and depth < 4
    if isinstance(value, dict) and value and (depth < 2 or "events" in value):
        rows = [f"{space}  {json.dumps(key)}: {golden_text(it, depth + 1)}" for key, it in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{space}}}"
    if isinstance(value, list) and value and is_list:
        return "[\n" + ",\n".join(f"{space}  {golden_text(it, depth + 1)}" for it in value) + f"\n{space}]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for path in FILES:
        golden = json.loads(path.read_text())
        new = {"runs": golden["runs"], **translations(golden["runs"])}
        if new != golden:  # an equal one may have its maps in another order, which protobuf chooses in each process
            path.write_text(golden_text(new) + "\n")
