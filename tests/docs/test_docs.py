"""The tables, paths and lists of the documents are those of the code."""

import ast
import importlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from pydantic import SecretStr
from starlette.routing import Route, WebSocketRoute

import agui_container
from agui_container.agents.approvals.approvals import ApprovalAnswer, Approvals
from agui_container.agents.assistant.goals import goal_tracker
from agui_container.agents.assistant.goals.goal_tracker import GoalDeclaration
from agui_container.agents.assistant.goals.schema_validation import UNSUPPORTED
from agui_container.agents.tool_calls.tool_call import ModelToolCall
from agui_container.engine.policy import CapacityLimits
from agui_container.main import build_app
from agui_container.models.bedrock import BedrockOptions
from agui_container.models.offline import RULES
from agui_container.models.openai import OpenAIOptions
from agui_container.ports import Permission, PolicyDecision, RunContext, goals
from agui_container.ports.records import ThreadStatus
from agui_container.protocol.commands import CATEGORIES, COMMANDS, ThreadCommand
from agui_container.protocol.errors import ERRORS
from agui_container.settings import TOOL_SETTINGS, Settings
from agui_container.tools.mcp.servers import HttpServer, StdioServer
from agui_container.tools.policy import PolicyRule
from tests.docs.documents import ARCHITECTURE, CHANGELOG, DECISIONS, DOCUMENTS, GUIDES, README, ROOT
from tests.docs.markdown import Document, code

# --- tables -----------------------------------------------------------------------------------------------------------


def shown_default(value: object) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value in ((), ""):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_a_table_ends_with_a_blank_line() -> None:
    """Markdown takes text right below a table for a row of it."""
    for document in DOCUMENTS:
        for line, following in itertools.pairwise(document.prose.splitlines()):
            if line.startswith("|"):
                assert not following or following.startswith("|"), f"{document.name}: {following}"


def test_the_settings_table_is_the_settings_class() -> None:
    rows = {code(variable): code(default) for variable, default, _ in GUIDES["configuration"].table("variable")}
    assert rows == {
        f"AGUI_{name.upper()}": shown_default(field.default) for name, field in Settings.model_fields.items()
    }
    assert list(rows) == [f"AGUI_{name.upper()}" for name in Settings.model_fields]


def test_the_settings_of_tools_are_named_as_those_that_other_agents_use_too() -> None:
    introduction = GUIDES["configuration"].text.partition("\n## ")[0]
    _, _, named = introduction.partition("concern the built-in assistant only, except ")
    assert sorted(re.findall(r"`AGUI_(\w+)`", named)) == sorted(name.upper() for name in TOOL_SETTINGS)


def test_the_routes_table_is_what_the_application_serves() -> None:
    served = set()
    for route in build_app(Settings(roboto=False, metrics=True)).routes:
        assert isinstance(route, Route | WebSocketRoute)
        methods = (route.methods or set()) - {"HEAD"} if isinstance(route, Route) else {"GET"}
        served |= {f"{method} {route.path}" for method in methods}
    assert {code(route) for route, _ in GUIDES["http-api"].table("route")} == served


def test_the_errors_table_is_the_table_of_the_code() -> None:
    table = GUIDES["http-api"].table("code")
    rows = [(code(name), int(http), int(close), retry) for name, http, close, retry, _ in table]
    assert rows == [
        (name.value, row.http, row.ws_close, "yes" if row.is_retryable else "no") for name, row in ERRORS.items()
    ]


def test_the_commands_table_has_every_command() -> None:
    named = [command for command, _ in GUIDES["http-api"].table("command", after="## Commands")]
    assert named == [f'`{{"type":"{command}"}}`' for command in COMMANDS]


def test_the_offline_models_table_shows_every_rule() -> None:
    messages = [code(message) for message, _ in GUIDES["models"].table("message")]
    shown = [[message for message in messages if rule.pattern.fullmatch(message)] for rule in RULES]
    assert all(shown)
    assert [message for message in messages if message not in itertools.chain(*shown)] == ["anything else"]


def value_of(name: str) -> object:
    """Return the value of a dotted name: a module's constant, or the default of a field of one of its classes."""
    owner, _, last = name.rpartition(".")
    module, _, kind = owner.rpartition(".")
    if kind[:1].isupper():
        return getattr(getattr(importlib.import_module(module), kind)(), last)
    return getattr(importlib.import_module(owner), last)


def test_the_bounds_are_those_of_the_code() -> None:
    limits, constants = (ARCHITECTURE.table("what", after=text) for text in ("## Bounds", "These are `CapacityLimits`"))
    default = CapacityLimits()
    assert [(code(name), int(bound.replace(",", ""))) for name, bound, _ in limits] == [
        (name, getattr(default, name)) for name in CapacityLimits.__struct_fields__
    ]
    for name, bound, _ in constants:
        assert value_of(code(name)) == int(bound.replace(",", "")), name


def test_figures_of_speed_are_those_of_the_benchmarks() -> None:
    rows = GUIDES["benchmarks"].table("measure", "## A run")
    cost = {measure: (ours, theirs) for measure, ours, peer, theirs, *_ in rows if peer == "AGUIApp"}
    strings, _ = cost["transport, strings here, events there: CPU per event"]
    events, theirs = cost["transport, events made by the agent: CPU per event"]
    run, run_there = cost["run of one delta: CPU"]
    assert f"| CPU of a text token | {theirs} | {strings.removesuffix(' µs')} to {events} |" in README.text
    token = f"{theirs} | {strings} from an agent that yields strings, {events} from one that makes events"
    assert f"| CPU of a text token at full speed | {token} (" in GUIDES["comparison"].text
    assert f"one delta costs {run_there} of CPU there and {run} here" in GUIDES["why-not"].text


def test_figures_of_attacks_that_miss_an_aim_are_marked() -> None:
    prose = " ".join(GUIDES["limits"].prose.split())
    first_event, ping = map(int, re.findall(r"aims are (\d+) ms to the first event and (\d+) ms for `/ping`", prose)[0])
    for attack, _, *cells in GUIDES["limits"].table("the first caller"):
        for cell, aim in zip(cells, (first_event, first_event, ping), strict=True):
            misses = float(cell.strip("*").removesuffix(" ms").replace(",", "")) > aim
            assert cell.startswith("**") == misses, f"{attack}: {cell}"


def test_the_table_of_mcp_servers_has_every_field() -> None:
    rows = {
        name: code(default)
        for field, default, _ in GUIDES["tools"].table("field", after="## MCP servers")
        for name in re.findall(r"`(\w+)`", field)
    }
    known = {**HttpServer.model_fields, **StdioServer.model_fields}
    assert rows.keys() == known.keys()
    for name in ("timeout", "connect_timeout"):
        assert rows[name] == f"{known[name].default:g}"


@pytest.mark.parametrize(
    ("after", "options"), [("## Amazon Bedrock", BedrockOptions), ("## OpenAI and compatible servers", OpenAIOptions)]
)
def test_the_tables_of_options_have_every_option(after: str, options: type[BedrockOptions | OpenAIOptions]) -> None:
    named = [name for cell, *_ in GUIDES["models"].table("option", after) for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(field.name for field in fields(options))


def test_the_tables_of_policy_and_interrupt_have_every_field() -> None:
    rules, interrupts, answers = (
        [code(name) for name, *_ in GUIDES[guide].table("field", after)]
        for guide, after in (("tools", "## Policy"), ("approvals", "## The interrupt"), ("approvals", "## The answer"))
    )
    assert rules == list(PolicyRule.model_fields)
    (asked,) = (
        Approvals()
        .create(ModelToolCall("id", "name", "{}"), PolicyDecision(Permission.ASK, category="any"), "id")
        .interrupts
    )
    assert sorted(interrupts) == sorted(asked.model_dump(by_alias=True, exclude_none=True))
    assert answers == [field.alias for field in ApprovalAnswer.model_fields.values()]


def test_the_guide_of_goals_has_every_field_event_and_refused_keyword() -> None:
    fields = [code(name) for name, _ in GUIDES["goals"].table("field", "### The declaration")]
    events = [code(name) for name, *_ in GUIDES["goals"].table("name", "### Events of goals")]
    assert fields == [field.alias or name for name, field in GoalDeclaration.model_fields.items()]
    assert events == [goals.DECLARED, goals.ACHIEVED, goal_tracker.PROMPTED, goals.FAILED]
    assert all(f"`{keyword}`" in GUIDES["goals"].prose for keyword in UNSUPPORTED)


def test_the_guide_of_threads_has_every_command_field_category_and_status() -> None:
    guide = GUIDES["threads"]
    commands = {code(name): re.findall(r"`(\w+)`", fields) for name, _, fields in guide.table("command", "## Commands")}
    known = {str(kind.model_fields["type"].default): kind for kind in get_args(ThreadCommand)}
    own = {
        name: [field.alias for key, field in kind.model_fields.items() if key != "type"] for name, kind in known.items()
    }
    assert commands == {**own, "threads.list": own["threads.list"][1:]}
    rows = {code(name): re.findall(r"`(\w+)`", cell) for name, cell in guide.table("`sentiment`")}
    assert rows == {sentiment.value: [each.value for each in fitting] for sentiment, fitting in CATEGORIES.items()}
    assert [code(name) for name, _ in guide.table("`status`", "### Status")] == [
        status.value for status in ThreadStatus
    ]


def test_the_table_of_the_context_has_every_attribute() -> None:
    named = [code(name).partition("(")[0] for name, _ in GUIDES["agents"].table("`ctx.`")]
    public = {name for name in dir(RunContext) if not name.startswith("_")} - {"is_cancelled"}
    assert {name.partition(".")[0] for name in named} == public


def test_every_rule_of_the_verifier_has_a_row() -> None:
    assert [rule for rule, *_ in ARCHITECTURE.table("rule")] == [f"V{number}" for number in range(1, 30)]


def test_make_targets_are_those_of_the_makefile() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    listed = {code(command).removeprefix("make ") for command, _ in GUIDES["development"].table("command")}
    assert listed == targets


# --- paths, names and lists -------------------------------------------------------------------------------------------

TOP = {path.name for path in ROOT.iterdir()}
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
USERS_FILES = {"agui.toml", ".agui/dev.db"}
"""Files in the folders of readers."""


def looks_like_a_path(span: str) -> bool:
    if not FILE.fullmatch(span) or span in USERS_FILES:
        return False
    first, slash, _ = span.partition("/")
    return (
        bool(slash and first in TOP)
        or span in TOP
        or (span not in USERS_FILES and span.endswith((".lock", ".md", ".toml", ".yml")))
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_paths_and_links_lead_somewhere(document: Document) -> None:
    assert [span for span in document.spans if looks_like_a_path(span) and not (ROOT / span).exists()] == []
    local = [link for link in document.links if "://" not in link]
    assert [link for link in local if not (ROOT / document.name).parent.joinpath(link).exists()] == []


def anchors(path: Path) -> set[str]:
    """Return the fragments of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", Document.read(path, ROOT).prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_to_headings_lead_to_headings(document: Document) -> None:
    here = ROOT / document.name
    for target, fragment in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", document.prose):
        assert fragment in anchors(here.parent / target if target else here), f"{target}#{fragment}"


PACKAGE = ROOT / "app" / "agui_container"
SOURCE = re.compile(r"`(?:app/agui_container/)?(?P<path>[\w/]+\.py)`|in the same file")
NAMES_BEFORE = re.compile(r"(?:`[\w.]+`(?:, | and ))*`[\w.]+` (?:in )?$")
NAMES_BEHIND = re.compile(r": (?:`[\w.]+`(?:, | and )?)+")


def names_beside_files(document: Document) -> Iterator[tuple[str, str]]:
    """Iterate over the names that a document says are in a file, with the path of the file in the package."""
    for paragraph in re.split(r"\n\n|\n(?=\|)", document.prose):
        text, path = " ".join(paragraph.split()), None
        for found in SOURCE.finditer(text):
            path = found["path"] or path
            assert path, f"{document.name}: no file before {text[: found.end()]!r}"
            if not (PACKAGE / path).exists():
                continue
            before = NAMES_BEFORE.search(text, 0, found.start())
            behind = NAMES_BEHIND.match(text, found.end())
            for names in filter(None, (before, behind)):
                yield from ((name, path) for name in re.findall(r"`([\w.]+)`", names[0]))


def defined_names(path: Path) -> set[str]:
    """Return the functions, classes and assigned names of a module, without local variables."""
    names: set[str] = set()
    for scope in ast.walk(ast.parse(path.read_text())):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(scope.name)
        for statement in scope.body if isinstance(scope, ast.Module | ast.ClassDef) else ():
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_names_beside_a_file_are_defined_in_it() -> None:
    # "`_agree` in `app/agui_container/protocol/validator.py`"
    named = [each for document in DOCUMENTS for each in names_beside_files(document)]
    assert named
    assert [each for each in named if each[0].rpartition(".")[2] not in defined_names(PACKAGE / each[1])] == []


def test_the_tree_lists_every_file_of_the_application() -> None:
    (tree,) = (block for block in ARCHITECTURE.blocks if "tree" in block.marks)
    listed: list[str] = []
    folders: list[str] = []
    for line in tree.text.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [*folders[:depth], name]
        if not name.endswith("/"):
            listed.append("".join(folders))
        elif depth:
            listed.append(f"{''.join(folders)}__init__.py")  # a folder's line stands for its package
    written = (path for path in (ROOT / "app").rglob("*.py") if not path.name.endswith("_pb2.py"))
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in written)


def test_decisions_are_numbered_and_say_how_to_undo_them() -> None:
    numbers = [Path(document.name).name.partition("-")[0] for document in DECISIONS]
    assert len(set(numbers)) == len(numbers)  # numbers of removed records are missing
    for document in DECISIONS:
        title, *sections = re.findall(r"^#+ (.+)$", document.text, re.MULTILINE)
        assert re.match(r"\d{4} ", title)
        assert title.startswith(Path(document.name).name[:4])
        assert sections == ["Context", "Choice", "Consequences", "Undo"]


def test_a_decision_refers_to_decisions_that_exist() -> None:
    numbers = {Path(document.name).name[:4] for document in DECISIONS}
    for document in DECISIONS:
        assert {*re.findall(r"\b0\d{3}\b", document.prose)} <= numbers, document.name


def test_a_superseded_decision_names_a_later_one_that_says_the_same() -> None:
    texts = {Path(document.name).name[:4]: document.text for document in DECISIONS}
    superseded = {number: text for number, text in texts.items() if "superseded" in text.lower()}
    assert superseded
    for number, text in superseded.items():
        (later,) = re.findall(r"Superseded\W[^.\[]*by \[(\d{4})\]", text)
        assert later > number
        assert re.search(rf"Replaces [^#]*\[{number}\]", texts[later]), number


def test_the_changelog_has_this_version() -> None:
    assert f"## [{agui_container.__version__}] - " in CHANGELOG.text


@pytest.mark.parametrize(("name", "most"), [("README.md", 10_000), ("CHANGELOG.md", 16_000)])
def test_the_first_pages_of_a_newcomer_are_short(name: str, most: int) -> None:
    assert (ROOT / name).stat().st_size <= most


def test_lines_that_can_be_broken_are_short() -> None:
    for document in DOCUMENTS:
        lines = document.prose.splitlines()
        assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == [], document.name


def test_documents_name_no_machine() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"/(home|root|Users|tmp/x|work)/", document.text), document.name
