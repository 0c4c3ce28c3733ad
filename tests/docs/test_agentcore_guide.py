"""Guides to AgentCore: the role is that of ``agui deploy``, and AWS's CLI can start the server."""

import json
import sys
from pathlib import Path

from agui_container.aws.deploy.options import DeployOptions
from agui_container.aws.deploy.policies import (
    identity_statements,
    policy,
    repository_arn,
    runtime_policy,
    runtime_trust,
)
from agui_container.settings import Settings
from tests.docs.documents import GUIDES
from tests.ports import free_port
from tests.server.sockets.process import ServerProcess

PLACE = {"${AWS::Partition}": "aws", "${AWS::Region}": "us-east-1", "${AWS::AccountId}": "123456789012"}
SERVERS = '[{"name": "issues", "url": "https://a.example/mcp", "identity": {"provider": "github"}}]'
MODEL = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def test_the_documents_of_the_role_are_those_that_a_deployment_makes() -> None:
    found = [json.loads(block.text) for block in GUIDES["agentcore"].blocks if block.language == "json"]
    documents = [document for document in found if "Statement" in document]
    made = runtime_policy(repository_arn("agui-weather"), Settings(model=MODEL), DeployOptions(name="weather"))
    identity = policy(list(identity_statements(Settings(mcp_servers=SERVERS), "weather")))
    filled_in = json.dumps([runtime_trust(), made, identity])
    for placeholder, value in PLACE.items():
        filled_in = filled_in.replace(placeholder, value)
    assert documents == json.loads(filled_in)


def test_the_program_for_awss_cli_serves_on_the_port_that_the_cli_names(tmp_path: Path) -> None:
    [program] = [block for block in GUIDES["agentcore"].blocks if "os.execv" in block.text]
    (tmp_path / "main.py").write_text(program.text)
    port = free_port()
    with ServerProcess((sys.executable, "main.py"), tmp_path, PORT=str(port)) as server:
        assert server.port == port
