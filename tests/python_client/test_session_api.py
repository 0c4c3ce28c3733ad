"""The examples of the session API that this client follows, with names changed as the README's table says."""

import inspect
import re
from typing import Annotated, Optional

import ag_ui.core
import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent
from pydantic import Field

import agui_client
from agui_client import ClientTool, Session, SessionOptions, SyncSession, ToolCallEvent, client_tool
from tests.sockets.process import ROOT

facts: list[str] = []


@client_tool
def remember(fact: str, tags: Optional[list[str]] = None) -> str:  # noqa: UP045 - as the example has it
    """Store a fact in long-term memory.

    Args:
        fact: A standalone sentence worth remembering.
        tags: Optional tags for later retrieval.
    """
    facts.append(fact)
    return f"stored with {tags}"


@client_tool
def recall(query: Annotated[str, Field(description="Substring to search for.")]) -> str:
    """Search long-term memory."""
    return ", ".join(fact for fact in facts if query in fact)


def test_descriptions_come_from_the_docstring() -> None:
    properties = remember.spec.parameters["properties"]  # type: ignore[index]
    assert properties["fact"]["description"] == "A standalone sentence worth remembering."
    assert properties["tags"]["description"] == "Optional tags for later retrieval."
    assert remember.spec.parameters["required"] == ["fact"]  # type: ignore[index]
    assert remember.spec.description == "Store a fact in long-term memory."


def test_descriptions_come_from_annotations_and_defaults() -> None:
    assert recall.spec.parameters["properties"]["query"]["description"] == "Substring to search for."  # type: ignore[index]

    @client_tool
    def count(what: str = Field(description="The thing."), at_most: int = Field(3, ge=0)) -> str:
        """Count things."""
        return what

    schema = count.spec.parameters
    assert schema["required"] == ["what"]  # type: ignore[index]
    assert schema["properties"]["what"]["description"] == "The thing."  # type: ignore[index]
    assert schema["properties"]["at_most"] == {"default": 3, "minimum": 0, "type": "integer"}  # type: ignore[index]


def test_a_tool_has_explicit_overrides() -> None:
    def my_fn(fact: str) -> str:
        return fact

    tool = ClientTool(my_fn, name="store_fact", description="Store a fact in long-term memory.")
    assert (tool.name, tool("x")) == ("store_fact", "x")

    @client_tool(name="store_fact", description="Persist a fact.")
    def _store(fact: str) -> str:
        return fact

    assert _store.name == "store_fact"


def test_fire_and_forget_with_client_tools(url: str) -> None:
    session = SyncSession.start('call remember {"fact": "my favorite color is blue"}', client_tools=[remember], url=url)
    session.run()
    assert facts[-1] == "my favorite color is blue"
    assert session.client_tool_names == ["remember"]


def test_observing_events_as_they_happen(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    session = SyncSession.start("think about machine learning", url=url)
    for event in session.events():
        if isinstance(event, TextMessageContentEvent):
            print(event.delta, end="", flush=True)  # noqa: T201 - the example
    assert capsys.readouterr().out == "I have thought about machine learning."


def test_resuming_an_existing_session(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    thread_id = SyncSession.start("hello", url=url).run().thread_id
    session = SyncSession.from_id(thread_id, url=url)
    print(f"Session has {len(session.messages)} messages")  # noqa: T201 - the example
    assert capsys.readouterr().out == "Session has 2 messages\n"


def test_progress_logging(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    def log(event: BaseEvent) -> None:
        if isinstance(event, ToolCallEvent):
            print(f"[tool-use] {event.name}({event.input})")  # noqa: T201 - the example

    session = SyncSession.start('call recall {"query": "color"}', client_tools=[recall], url=url)
    session.run(on_event=log)
    assert capsys.readouterr().out == "[tool-use] recall({'query': 'color'})\n"


README = (ROOT / "clients" / "python" / "README.md").read_text()


def names_of(kind: type) -> set[str]:
    """Attributes and fields of a class."""
    return {*dir(kind), *(name for base in kind.__mro__ for name in inspect.get_annotations(base))}


def test_the_readmes_table_names_what_is_there() -> None:
    rows = [row.split("|")[1:3] for row in README.splitlines() if row.startswith("| `") and row.count("|") == 3]
    assert len(rows) > 15
    cells = [there + here if "the same names" in here else here for there, here in rows]
    named = {part for code in re.findall("`([^`]+)`", " ".join(cells)) for part in code.partition("(")[0].split(".")}
    public = {**vars(ag_ui.core), **vars(agui_client)}
    kinds = [SessionOptions, *(kind for name in named if isinstance(kind := public.get(name), type))]
    parameters = {*inspect.signature(Session).parameters, *inspect.signature(Session.fork).parameters}
    known = {*public, *parameters, *(name for kind in kinds for name in names_of(kind)), "ag_ui", "core", "await"}
    assert named - known == set()


def test_the_readme_names_every_method_of_a_session() -> None:
    public = {name for name in dir(Session) if not name.startswith("_")}
    named = {name for name in public if f"`{name}`" in README or f"`{name}(" in README or f".{name}(" in README}
    assert public - named == set()
