"""Guides to AgentCore: the role is that of ``agui deploy``, AWS's CLI can start the server, and costs are current."""

import json
import sys
from pathlib import Path

from agui_container.aws.deploy.options import DeployOptions
from agui_container.aws.deploy.policies import AwsPlace, identity_statements, policy, runtime_policy, runtime_trust
from agui_container.settings import Settings
from bench import cost
from tests.docs.documents import GUIDES
from tests.ports import free_port
from tests.server.sockets.process import ServerProcess

PLACE = AwsPlace("aws", "us-east-1", "123456789012")
SERVERS = '[{"name": "issues", "url": "https://a.example/mcp", "identity": {"provider": "github"}}]'
MODEL = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def test_the_documents_of_the_role_are_those_that_a_deployment_makes() -> None:
    found = [json.loads(block.text) for block in GUIDES["agentcore"].blocks if block.language == "json"]
    documents = [document for document in found if "Statement" in document]
    options, repository = DeployOptions(name="weather"), PLACE.arn("ecr", "repository/agui-weather")
    made = runtime_policy(PLACE, repository, Settings(model=MODEL), options)
    identity = policy(list(identity_statements(PLACE, Settings(mcp_servers=SERVERS), "weather")))
    assert documents == [runtime_trust(PLACE), made, identity]


def test_the_cost_of_a_session_is_the_table_that_the_program_prints() -> None:
    assert cost.table(cost.SESSIONS, cost.SERVERS) in GUIDES["behind-agentcore"].text
    prices = f"({cost.VCPU_HOUR_USD} a vCPU hour, {cost.GB_HOUR_USD} a GB hour)"
    assert prices in GUIDES["behind-agentcore"].text


def test_the_program_for_awss_cli_serves_on_the_port_that_the_cli_names(tmp_path: Path) -> None:
    [program] = [block for block in GUIDES["agentcore"].blocks if "os.execv" in block.text]
    (tmp_path / "main.py").write_text(program.text)
    port = free_port()
    with ServerProcess((sys.executable, "main.py"), tmp_path, PORT=str(port)) as server:
        assert server.port == port
