"""Settings in ``agui.toml``: where the file is found, what wins, one clear line for each mistake, and its schema."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agui_container.cli.command_line import main
from agui_container.main import build_app
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_settings
from tests.docs.documents import GUIDES
from tests.docs.settings_schema import FILE, schema_text
from tests.secret_search import planted, search


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"AGUI_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failure(config: Path | None = None) -> str:
    with pytest.raises(SettingsError) as failed:
        load_settings(config)
    return str(failed.value)


def test_a_file_that_is_named_takes_the_place_of_the_one_in_the_folder(folder: Path) -> None:
    (folder / "agui.toml").write_text("port = 1\nmax_steps = 2\n")
    (folder / "other.toml").write_text("port = 2\n")
    settings = load_settings(Path("other.toml"))
    assert (settings.port, settings.max_steps) == (2, Settings().max_steps)


def test_the_environment_wins_over_the_file_and_arguments_win_over_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "agui.toml").write_text('host = "file"\nport = 1\nmodel = "openai:file"\n')
    monkeypatch.setenv("AGUI_HOST", "variable")
    monkeypatch.setenv("AGUI_PORT", "2")
    settings = load_settings(port="3", host=None)
    assert (settings.host, settings.port, settings.model) == ("variable", 3, "openai:file")


def test_an_empty_variable_leaves_the_value_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agui.toml").write_text("port = 9000\n")
    monkeypatch.setenv("AGUI_PORT", "")
    assert load_settings().port == 9000


def test_tables_are_what_json_is_in_a_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "model": "bedrock:m",
        "model_options": '{"max_tokens": 5, "guardrail": {"id": "g", "version": "1"}}',
        "models": "fast=openai:a,slow=bedrock:b",
        "tool_policy": '[{"tool_pattern": "pay_*", "policy": "ask"}, {"tool_pattern": "*", "policy": "deny"}]',
        "mcp_servers": '[{"name": "docs", "url": "https://docs.example/mcp", "headers": {"x": "y"}}]',
        "caller_limits": '{"runs": 5}',
    }
    (folder / "agui.toml").write_text("""
        model = "bedrock:m"
        [model_options]
        max_tokens = 5
        guardrail = {id = "g", version = "1"}
        [models]
        fast = "openai:a"
        slow = "bedrock:b"
        [[tool_policy]]
        tool_pattern = "pay_*"
        policy = "ask"
        [[tool_policy]]
        tool_pattern = "*"
        policy = "deny"
        [[mcp_servers]]
        name = "docs"
        url = "https://docs.example/mcp"
        headers = {x = "y"}
        [caller_limits]
        runs = 5
    """)
    settings = load_settings()
    assert settings == Settings.model_validate(variables)
    build_app(settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "prot is not a setting of this version; did you mean port?"),
        ("AGUI_PORT = 1", "AGUI_PORT is not a setting of this version; did you mean port?"),
        ("tool-policy = []", "tool-policy is not a setting of this version; did you mean tool_policy?"),
        ("[x]\nport = 1", "x is not a setting of this version; known are agent, agents, allowed_hosts, "),
        ("port = 100000", "port=100000: Input should be less than or equal to 65535."),
        ('on_busy = "wait"', "on_busy='wait': Input should be "),
        ("port = ", "Invalid value (at "),
        ("store = 5", "store: Input should be a valid string."),
        ("cors_origins = [1]", "cors_origins=1: "),
    ],
)
def test_a_mistake_in_the_file_is_one_line_that_names_the_file_and_the_setting(
    text: str, message: str, folder: Path
) -> None:
    (folder / "agui.toml").write_text(text)
    shown = failure()
    assert shown.startswith(f"agui.toml: {message}")
    assert "\n" not in shown


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_file_that_is_named_and_cannot_be_read_stops_the_start(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--config", name]) == 2
    assert capsys.readouterr().err.startswith(f"cannot start: {name}: ")


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_mistake_and_bytes_that_are_no_text_are(folder: Path) -> None:
    (folder / "agui.toml").write_bytes(b"\xef\xbb\xbfport = 9000\r\nmax_steps = 2\r\n")
    assert (load_settings().port, load_settings().max_steps) == (9000, 2)
    (folder / "agui.toml").write_bytes(b"\xff\xfe")
    assert failure().startswith("agui.toml: ")


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["config", *options]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    search(shown.out, "the output of agui config")
    return shown.out


def test_each_value_is_shown_with_its_origin(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "agui.toml").write_text("port = 1\nmax_steps = 2\n")
    monkeypatch.setenv("AGUI_PORT", "3")
    shown = json.loads(printed(capsys, "--json"))
    assert list(shown) == list(Settings.model_fields)
    assert shown["port"] == {"value": 3, "origin": "AGUI_PORT"}
    assert shown["max_steps"] == {"value": 2, "origin": "agui.toml"}
    assert shown["host"] == {"value": Settings().host, "origin": "default"}


def test_the_guide_shows_what_is_printed_for_its_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = GUIDES["configuration"].blocks
    (folder / "agui.toml").write_text(next(block.text for block in blocks if block.file_name == "agui.toml"))
    shown = printed(capsys).splitlines(keepends=True)
    lines = "".join(line for line in shown if not line.endswith("# default\n"))
    assert lines in [block.text for block in blocks if block.language == "text"]


def test_the_text_is_a_file_with_the_same_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_SYSTEM_PROMPT", 'two\nlines "quoted" \\ é \x7f')
    monkeypatch.setenv("AGUI_MODEL_OPTIONS", '{"temperature": null, "stop_sequences": ["a.b", null]}')
    monkeypatch.setenv("AGUI_TOOL_POLICY", '[{"tool_pattern": "a.b*", "policy": "ask"}]')
    (folder / "again.toml").write_text(printed(capsys))
    before = load_settings()
    for name in ("SYSTEM_PROMPT", "MODEL_OPTIONS", "TOOL_POLICY"):
        monkeypatch.delenv(f"AGUI_{name}")
    after = load_settings(Path("again.toml"))
    same = {name for name in Settings.model_fields if getattr(before, name) == getattr(after, name)}
    assert set(Settings.model_fields) - same == {"model_options"}
    assert json.loads(after.model_options) == {"stop_sequences": ["a.b"]}


@pytest.mark.parametrize(
    "text",
    [
        'openai_api_key = "{secret}"',
        'store = "postgresql://user:{secret}@host/database"',
        'bus = "redis://:{secret}@host/0"',
        'openai_base_url = "https://user:{secret}@host/v1"',
        '[model_options]\nheaders = {{ X-Any = "{secret}" }}',
        '[[mcp_servers]]\nname = "a"\nurl = "https://host/mcp?x=1&api_key={secret}"\n',
        '[[mcp_servers]]\nname = "a"\nurl = "https://host/mcp"\nheaders = {{ X-Any = "{secret}" }}\n',
        '[[mcp_servers]]\nname = "a"\ncommand = "c"\nenv = {{ ANY = "{secret}" }}\n',
        '[[mcp_servers]]\nname = "a"\ncommand = "c"\nargs = ["--api-key", "{secret}"]\n',
        '[[mcp_servers]]\nname = "a"\ncommand = "c"\nargs = ["--auth-token={secret}"]\n',
        'model_options = "no JSON {secret}"',
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_shown(
    text: str, options: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "agui.toml").write_text(text.format(secret=planted("setting")))
    shown = printed(capsys, *options)
    (folder / "agui.toml").unlink()  # what tests leave in their folders is searched for secrets
    assert planted("setting") not in shown
    assert "***" in shown


def test_names_that_only_sound_like_secrets_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "agui.toml").write_text("context_tokens = 7\n[model_options]\nmax_tokens = 5\n")
    shown = tomllib.loads(printed(capsys))
    assert (shown["context_tokens"], shown["model_options"]) == (7, {"max_tokens": 5})


def test_the_schema_in_the_package_is_made_from_the_settings() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), "make schema writes it again"


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(printed(capsys, "--schema"))
    Draft202012Validator.check_schema(schema)
    assert list(schema["properties"]) == [*Settings.model_fields, "deploy"]


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (next(block.text for block in GUIDES["configuration"].blocks if block.language == "toml"), True),
        ("", True),
        ("prot = 1", False),
        ('port = "x"', False),
        ("port = 70000", False),
        ('[[tool_policy]]\ntool_pattern = "*"\npolicy = "maybe"', False),
        ('[[tool_policy]]\npolicy = "ask"', False),
        ('[[mcp_servers]]\nname = "a"\nurl = "https://a.example"', True),
        ('[[mcp_servers]]\nname = "a"', False),
        ("[model_options]\nmax_token = 5", False),
        ("[caller_limits]\nrun = 5", False),
    ],
)
def test_the_schema_marks_the_mistakes_that_would_stop_the_start(text: str, is_valid: bool) -> None:  # noqa: FBT001 - a column
    validator = Draft202012Validator(json.loads(FILE.read_text(encoding="utf-8")))
    assert validator.is_valid(tomllib.loads(text)) is is_valid


def test_a_file_with_all_defaults_fits_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(tomllib.loads(printed(capsys)))
