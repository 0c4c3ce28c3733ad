"""The documents of the role in the guide are those that ``agui deploy`` makes."""

import json

from agui_container.deploy.place import AwsPlace
from agui_container.deploy.policies import runtime_policy, runtime_trust
from agui_container.settings import Settings
from tests.docs.documents import GUIDES

PLACE = AwsPlace("aws", "us-east-1", "123456789012")
MODEL = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def test_the_documents_of_the_role_are_those_that_a_deployment_makes() -> None:
    documents = [json.loads(block.text) for block in GUIDES["agentcore"].blocks if block.language == "json"]
    policy = runtime_policy(PLACE, PLACE.arn("ecr", "repository/agui-weather"), Settings(model=MODEL), [], {})
    assert documents == [runtime_trust(PLACE), policy]
