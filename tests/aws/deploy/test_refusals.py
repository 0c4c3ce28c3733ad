"""What cannot be deployed is named, with its place and without its secrets, before anything is made."""

from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.account import Account
from tests.aws.deploy.test_template import SECRET, write

OWN = 'agent = "agent:tools"\n'
WORD = "swordfish"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[deploy]\nnmae = "x"', "unknown field `nmae`"),
        ('[deploy]\nname = "1x"', "$.name"),
        ("[deploy]\nidle_timeout = 5", "$.idle_timeout"),
        ('[deploy]\nsubnets = ["subnet-01234567"]', "subnets and security_groups belong together"),
        ('[deploy.secrets]\nnothing = "x"', "$.secrets[...]"),
        (f'[deploy.secrets]\nnothing = "{SECRET}"', "nothing is not a setting"),
        ('[deploy.environment]\nAGUI_MODEL = "x"', "AGUI_MODEL: is a setting"),
        (f'[deploy.environment]\nPAGER_TOKEN = "{WORD}"', "PAGER_TOKEN: is a secret"),
        ("[deploy]\nmemory_days = 2", "$.memory_days"),
        ('store = "sqlite:///x.db"\n[deploy]\nmemory_days = 30', "memory_days: there is a store already"),
        ('[deploy]\npolicy = "missing.json"', "missing.json: No such file"),
        ("deploy = 1", "deploy must be a table"),
        ('model = "bedrock:m"\nmodel_options = {guardrail = {version = "1"}}', "guardrail: id: Field required"),
        ('[[mcp_servers]]\nname = "x"', "AGUI_MCP_SERVERS: "),
        ('model = "bedrock:m"\nmodel_options = {regoin = "x"}', "regoin: Unexpected keyword argument"),
        (f'store = "postgresql://me:{WORD}@db/agui"', "store (agui.toml) has a secret"),
        (f'openai_api_key = "{WORD}"', "openai_api_key (agui.toml) has a secret"),
        (f'[[mcp_servers]]\nname = "x"\nurl = "http://x"\nheaders = {{A = "{WORD}"}}', "mcp_servers (agui.toml) has"),
        (f'{OWN}system_prompt = "x"', "AGUI_SYSTEM_PROMPT is for the built-in assistant"),
        (f'{OWN}max_steps = 3\n[deploy]\nimage = "a/b:1"', "AGUI_MAX_STEPS is for the built-in assistant"),
        ('agent = "typo:agent"', "there is no module 'typo' (wanted for 'typo:agent')"),
        ('agent = "agent:typo"', "agent.py has no 'typo' (wanted for 'agent:typo')"),
        ('agent = "agent"', "'agent' is not of the form module:attribute"),
        ('[agents]\nhelper = "assistant"\nother = "agents.typo:agent"', "there is no module 'agents.typo'"),
        ('tools = "typo:tools"', "there is no module 'typo' (wanted for 'typo:tools')"),
        ('skills = "missing"', "AGUI_SKILLS: "),
        ("tool_policy = [{tool = 1}]", "AGUI_TOOL_POLICY: "),
        ("caller_limits = {typo = 1}", "AGUI_CALLER_LIMITS="),
        ('model = "openai:m"\nmodel_options = {typo = 1}', "AGUI_MODEL_OPTIONS: typo"),
    ],
)
def test_a_mistake_is_named_before_anything_is_made(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    write(project, text)
    assert main(["deploy"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert WORD not in error
    assert account.calls == []


def test_a_folder_without_a_dockerfile_is_refused(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "Dockerfile").unlink()
    assert main(["deploy"]) == 2
    assert "there is no Dockerfile. `agui init` makes a project with one." in capsys.readouterr().err
    assert account.calls == []


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            ("requirements.txt", "agui-container[all]"),
            "requirements.txt names agui-container[all], which is on no index",
        ),
        (("Dockerfile", "RUN pip install agui-client"), "Dockerfile names agui-client, which is on no index"),
        ((".dockerignore", "wheels"), "-py3-none-any.whl, which is not there"),
    ],
)
def test_an_image_that_could_not_install_the_server_is_refused_before_anything_is_made(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], file: tuple[str, str], message: str
) -> None:
    name, text = file
    (project / name).write_text(text)
    assert main(["deploy"]) == 2
    assert message in capsys.readouterr().err
    assert account.calls == []


def test_a_deployment_without_a_region_says_how_to_name_one(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert main(["deploy", "--plan"]) == 2
    assert "there is no region. Set AWS_REGION, or name one by --region" in capsys.readouterr().err
    assert account.calls == []


@pytest.mark.parametrize("form", ["--dry-run", "--emit"])
@pytest.mark.parametrize("option", ["--push", "--destroy", "--rollback 1"])
def test_a_dry_run_and_a_template_are_of_a_first_deployment_only(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], form: str, option: str
) -> None:
    assert main(["deploy", form, *option.split()]) == 2
    assert "Use --plan for anything else." in capsys.readouterr().err
    assert account.calls == []


@pytest.mark.parametrize("option", ["--dry-run", "--plan", "--push", "--emit"])
def test_every_form_of_the_command_refuses_settings_that_no_server_starts_with(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], option: str
) -> None:
    write(project, 'agent = "typo:agent"')
    assert main(["deploy", option]) == 2
    assert "there is no module 'typo'" in capsys.readouterr().err


@pytest.mark.parametrize("text", [f'openai_api_key = "{WORD}"', 'agent = "typo:agent"', "port = 1000000"])
def test_a_deployment_goes_back_and_is_deleted_whatever_its_settings_hold(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], text: str
) -> None:
    account.stacks.stacks["agui-weather"] = {
        "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/agui-weather/1",
        "StackStatus": "CREATE_COMPLETE",
        "Tags": [{"Key": "agui-deploy", "Value": "weather"}],
        "Template": {"Resources": {"Role": {"Type": "AWS::IAM::Role"}}},
        "Physical": {"Role": {"RoleName": "r"}},
    }
    write(project, text)
    assert main(["deploy", "--rollback", "1"]) == 2
    assert "runtime weather does not exist" in capsys.readouterr().err
    assert main(["deploy", "--destroy", "--yes"]) == 0
    assert account.calls == ["cloudformation.DeleteStack"]
