"""Settings from the environment, and one clear line for each invalid value."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agui_container.cli.command_line import main
from agui_container.main import build_app
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"AGUI_{name.upper()}", raising=False)


def failure(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> str:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as failed:
        load_settings()
    return str(failed.value)


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("AGUI_PORT", "9000", "port", 9000),
        ("AGUI_PORT", "", "port", 8080),
        ("AGUI_AGENT", "", "agent", "assistant"),
        ("agui_port", "9001", "port", 9001),
        ("AGUI_CORS_ORIGINS", "http://a, https://b:1 ,", "cors_origins", ("http://a", "https://b:1")),
        ("AGUI_CORS_ORIGINS", "HTTPS://Good.Example", "cors_origins", ("https://good.example",)),
        ("AGUI_CORS_ORIGINS", "http://a:80,https://a:443", "cors_origins", ("http://a", "https://a")),
        ("AGUI_CORS_ORIGINS", "http://a:443,https://a:1443", "cors_origins", ("http://a:443", "https://a:1443")),
        ("AGUI_CORS_ORIGINS", "", "cors_origins", ()),
        ("AGUI_ALLOWED_HOSTS", "Agent.Example, agent ,", "allowed_hosts", ("agent.example", "agent")),
        ("AGUI_ALLOWED_HOSTS", "", "allowed_hosts", ()),
        ("AGUI_APP_DOMAINS", "https://A.example, wss://*.b:1", "app_domains", ("https://a.example", "wss://*.b:1")),
        ("AGUI_ON_DISCONNECT", "cancel", "disconnect_grace", 0.0),
        ("AGUI_ON_DISCONNECT", "continue", "disconnect_grace", None),
        ("AGUI_ON_DISCONNECT", "grace:0.5", "disconnect_grace", 0.5),
        ("AGUI_CONTEXT_FILES", "AGENTS.md, docs/STYLE.md ,", "context_files", ("AGENTS.md", "docs/STYLE.md")),
        ("AGUI_CONTEXT_FILES", "", "context_files", ()),
    ],
)
def test_a_variable_is_understood(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str, expected: object
) -> None:
    monkeypatch.setenv(variable, value)
    assert getattr(load_settings(), field) == expected


BAD_VALUES = {
    "AGUI_PORT": ["eighty", "65536", "-1"],
    "AGUI_MAX_STEPS": ["0"],
    "AGUI_ON_DISCONNECT": ["grace", "grace:-1", "grace:30s", "Cancel", "cancel\n"],
    "AGUI_ON_BUSY": ["wait"],
    "AGUI_CORS_ORIGINS": [
        *("*", "example.com", "https://*.example.com", "https://user@example.com", "https://example.com?x"),
        "https:///",
    ],
    "AGUI_ALLOWED_HOSTS": ["*", "*.example.com", "https://example.com", "example.com:8080", "example.com.", "a b"],
    "AGUI_APP_DOMAINS": ["*", "https://*", "api.example", "https://a/x", "https://a b", "https://a;script-src"],
    "AGUI_MODEL": ["bedrock", "gpt:5"],
    "AGUI_SCOPE": ["user"],
    "AGUI_ERROR_STATUS": ["200"],
    "AGUI_RUN_TIMEOUT": ["0", "inf", "nan"],
    "AGUI_KEEPALIVE": ["-1", "inf"],
    "AGUI_MAX_BODY_BYTES": ["10", "100000001", "10MB"],
    "AGUI_CONTEXT_TOKENS": ["-1", "8k"],
    "AGUI_CONTEXT_OVERFLOW": ["drop"],
    "AGUI_LOG_FORMAT": ["xml"],
    "AGUI_LOG_LEVEL": ["verbose"],
}


@pytest.mark.parametrize(
    ("variable", "value"), [(variable, value) for variable, values in BAD_VALUES.items() for value in values]
)
def test_a_bad_value_is_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    message = failure(monkeypatch, variable, value)
    assert message.startswith(f"{variable}={value!r}: ")
    assert "\n" not in message
    assert not re.search(r"pattern|Value error|[\\^|]|\(\?|\[\w-", message.removeprefix(f"{variable}={value!r}: "))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("AGUI_MODEL", "gpt:5", "must be offline, bedrock:MODEL_ID or openai:MODEL, such as openai:gpt-5"),
        ("AGUI_ON_DISCONNECT", "30", "must be cancel, continue or grace:SECONDS, such as grace:30"),
        ("AGUI_CONSOLE_ACCENT", "blue", "must be # and six hexadecimal digits (0 to 9, a to f), such as #4a5bd4"),
        (
            "AGUI_CORS_ORIGINS",
            "http://a,https://b:1/",
            "an origin has no path and no slash at its end; write https://b:1 instead of https://b:1/",
        ),
        (
            "AGUI_CORS_ORIGINS",
            "https://b/chat",
            "an origin has no path and no slash at its end; write https://b instead of https://b/chat",
        ),
        ("AGUI_CORS_ORIGINS", "*", "* is not an origin such as https://example.com"),
    ],
)
def test_the_allowed_values_are_named_in_words(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    assert failure(monkeypatch, variable, value) == f"{variable}={value!r}: {words}."


@pytest.mark.parametrize(
    ("variable", "similar"),
    [
        ("AGUI_ON_BUZY", "AGUI_ON_BUSY"),
        ("agui_prot", "AGUI_PORT"),
        ("AGUI_MODLE", "AGUI_MODEL"),
        ("AGUI_DISCONNECT_GRACE", "AGUI_ON_DISCONNECT"),
        ("AGUI_LOGLEVEL", "AGUI_LOG_LEVEL"),
    ],
)
def test_an_unknown_variable_is_a_mistake_and_the_similar_one_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, similar: str
) -> None:
    message = failure(monkeypatch, variable, "x")
    assert message == f"{variable} is not a setting of this version; did you mean {similar}?"


@pytest.mark.parametrize("variable", ["AGUI_", "AGUI_XYZ"])
def test_an_unknown_variable_like_no_other_gets_the_list(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    message = failure(monkeypatch, variable, "x")
    assert message.startswith(f"{variable} is not a setting of this version; known are AGUI_AGENT, ")
    assert "\n" not in message


def test_variables_of_others_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_AGUI_PORT", "x")
    monkeypatch.setenv("AGUIX", "x")
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AGUI_PORT", "x"),
        ("AGUI_AGENT", "nowhere_at_all:agent"),
        ("AGUI_AGENT", "json"),
        ("AGUI_CONTEXT_FILES", "nowhere/AGENTS.md"),
        ("AGUI_SKILLS", "nowhere/skills"),
        ("AGUI_STORE", "mysql://host/database"),
        ("AGUI_BUS", "localhost:6379"),
    ],
)
def test_the_start_stops_with_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("agui_container.logging.configure_logging", lambda *_: None)
    assert main(["serve"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("cannot start: ")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["fly"], ["serve", "a:agent", "now"], ["serve", "--fast"]])
def test_any_other_command_line_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "Usage: agui" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "bedrock:m", "model_options": '{"max_token": 5}'}, "AGUI_MODEL_OPTIONS: max_token: Unexpected"),
        ({"model": "bedrock:m", "model_options": '{"max_attempts": 0}'}, "AGUI_MODEL_OPTIONS: max_attempts: Input"),
        ({"model": "openai:m", "model_options": '{"temperature": 1}'}, "AGUI_MODEL_OPTIONS: temperature: Unexpected"),
        ({"model_options": '{"a": 1}'}, "AGUI_MODEL_OPTIONS: a: Unexpected"),
        ({"model_options": "nope"}, "AGUI_MODEL_OPTIONS: Invalid JSON"),
        ({"context_overflow": "summarise"}, "AGUI_CONTEXT_OVERFLOW=summarise needs AGUI_CONTEXT_TOKENS"),
        ({"openai_api_key": "k"}, "AGUI_OPENAI_API_KEY is for AGUI_MODEL=openai:NAME, which is offline"),
        (
            {"model": "bedrock:m", "openai_base_url": "http://model:8080/v1"},
            "AGUI_OPENAI_BASE_URL is for AGUI_MODEL=openai:NAME, which is bedrock:m",
        ),
        ({"agent": "examples.hello_agent:agent", "max_steps": "3"}, "AGUI_MAX_STEPS is for the built-in assistant"),
        ({"agent": "examples.tools_agent:agent", "tool_policy": "[ ]"}, "AGUI_TOOL_POLICY is for the built-in assist"),
    ],
)
def test_a_setting_that_would_have_no_effect_stops_the_start(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{message}"):
        build_app(Settings(**settings))


def test_a_variable_that_is_passed_on_empty_has_no_effect_and_stops_nothing() -> None:
    build_app(Settings(openai_base_url="", openai_api_key=SecretStr("")))


@pytest.mark.parametrize(
    ("name", "settings", "brought_by"),
    [
        ("load_skill", {"skills": "examples/skills"}, "AGUI_SKILLS"),
        ("delegate", {"delegate_depth": 1}, "AGUI_DELEGATE_DEPTH"),
    ],
)
def test_a_tool_with_the_name_of_one_that_the_assistant_brings_stops_the_start(
    name: str, settings: dict[str, Any], brought_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"from agui_container.tools.function_tool import tool\n\n@tool\ndef {name}() -> str:\n    return 'mine'\n"
    (tmp_path / f"own_{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    tools = f"own_{name}:{name}"
    with pytest.raises(SettingsError) as failed:
        build_app(Settings(tools=tools, **settings))
    assert str(failed.value) == f"AGUI_TOOLS: the name '{name}' is taken by the tool that {brought_by} brings."
    build_app(Settings(tools=tools, delegate_depth=0))
