"""The documents of the role in the guide are those that ``agui deploy`` makes."""

import json

from agui_container.deploy.options import DeployOptions
from agui_container.deploy.place import AwsPlace
from agui_container.deploy.policies import identity_statements, policy, runtime_policy, runtime_trust
from agui_container.settings import Settings
from tests.docs.documents import GUIDES

PLACE = AwsPlace("aws", "us-east-1", "123456789012")
SERVERS = '[{"name": "issues", "url": "https://a.example/mcp", "identity": {"provider": "github"}}]'
MODEL = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def test_the_documents_of_the_role_are_those_that_a_deployment_makes() -> None:
    documents = [json.loads(block.text) for block in GUIDES["agentcore"].blocks if block.language == "json"]
    options, repository = DeployOptions(name="weather"), PLACE.arn("ecr", "repository/agui-weather")
    made = runtime_policy(PLACE, repository, Settings(model=MODEL), options)
    identity = policy(list(identity_statements(PLACE, Settings(mcp_servers=SERVERS), "weather")))
    assert documents == [runtime_trust(PLACE), made, identity]
