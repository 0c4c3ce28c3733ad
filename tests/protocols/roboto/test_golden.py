"""Golden files of sessions: a fork, a reconnect of each generation of clients, their own words, a skill, and goals.

``given`` has a thread in AG-UI's messages, or a request. The other members are what this protocol makes of it.
``python -m tests.protocols.roboto.test_golden`` writes them again, for a change that is meant.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from ag_ui.core import Message
from pydantic import TypeAdapter

from agui_container.ports.records import ThreadDelta, ThreadKey, ThreadNote, ThreadRecord, ThreadStatus
from agui_container.protocols.roboto.goals import conclude, declare
from agui_container.protocols.roboto.messages import NewRun, message_input, start_input
from agui_container.protocols.roboto.requests import Facts, SendRequest, StartRequest, TurnFailure, fact_notes, read
from agui_container.protocols.roboto.views import Position, SessionView
from tests.engine.doubles import Json

FOLDER = Path(__file__).with_name("golden")
MESSAGES = TypeAdapter(list[Message])


def view(given: Json, count: int | None = None, notes: Sequence[ThreadNote] | None = None) -> SessionView:
    """Return the session of the first messages of a thread, with the facts of the file or with other notes."""
    messages = MESSAGES.validate_python(given["messages"][:count])
    failures = [read(TurnFailure, it).note(key) for key, it in given.get("failures", {}).items()]
    own = [*fact_notes(msgspec.structs.asdict(read(Facts, given.get("facts", {})))), *failures]
    thread = ThreadRecord(ThreadKey("owner", "t"), ThreadStatus(given.get("status", "user_turn")), 0.0, 0.0)
    session = ThreadDelta(thread, (), None, None, "", own if notes is None else notes)
    return SessionView.of(session, messages, None)


def fork(given: Json) -> Json:
    origin = view(given)
    message_id, notes = origin.fork_at(given["at"], 9.0)
    last = next(at for at, it in enumerate(given["messages"]) if it["id"] == message_id)
    copy = view(given, last + 1, notes)
    return {"origin": json.loads(origin.json()), "fork": json.loads(copy.json())}


def reconnect(given: Json) -> Json:
    seen = Position.parse(view(given, given["seen"]).position.token)
    here = view(given)
    asked = {"newer client": (seen, True), "older client": (seen, False), "without a token": (Position(), True)}
    deltas = {name: json.loads(here.delta(since, knows_reset=knows)[0]) for name, (since, knows) in asked.items()}
    return {**deltas, "session": json.loads(here.json())}


def skill(given: Json) -> Json:
    request = read(SendRequest, given["request"])
    run_input = message_input(NewRun("t", "r", 5.0, Facts()), request)
    sent = run_input.model_dump(mode="json", by_alias=True, exclude_none=True)
    rows = view({"messages": sent["messages"]}).messages
    return {"run input": sent, "session": [row.json() for row in rows]}


def goals(given: Json) -> Json:
    request = read(StartRequest, given["request"])
    pending = declare(request.goals or (), "r-user", 5.0)
    run_input = start_input(NewRun("t", "r", 5.0, Facts(), pending), request)
    sent = run_input.model_dump(mode="json", by_alias=True, exclude_none=True)
    begun = view(sent, notes=[]).as_begun("r-user", pending)
    failed = view(sent, notes=[goal.note for goal in conclude(pending, 9.0)])
    return {"run input": sent, "begun": json.loads(begun.json()), "failed": json.loads(failed.json())}


TRANSLATIONS: Mapping[str, Callable[[Json], Json]] = {
    "fork": fork,
    "reconnect": reconnect,
    "sent-words": reconnect,
    "skill": skill,
    "goals": goals,
}


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_a_session_is_translated_as_its_golden_file_says(name: str) -> None:
    golden: Json = json.loads((FOLDER / f"{name}.json").read_text())
    assert TRANSLATIONS[name](golden.pop("given")) == golden


if __name__ == "__main__":
    for name, translate in TRANSLATIONS.items():
        path = FOLDER / f"{name}.json"
        given = json.loads(path.read_text())["given"]
        path.write_text(json.dumps({"given": given, **translate(given)}, indent=1, ensure_ascii=False) + "\n")
