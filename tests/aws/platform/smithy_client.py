"""AWS's generated client for Python 3.12 against the platform; prints what its user sees as JSON.

``python smithy_client.py ENDPOINT ARN SESSION INPUT`` runs in an environment of the client's own.
"""

import asyncio
import json
import sys

from aws_sdk_bedrock_agentcore.client import AsyncBedrockAgentCoreClient
from aws_sdk_bedrock_agentcore.config import AsyncBedrockAgentCoreConfig
from aws_sdk_bedrock_agentcore.models import InvokeAgentRuntimeInput, StopRuntimeSessionInput
from smithy_core.exceptions import SmithyError


async def main(endpoint: str, arn: str, session: str, run_input: str) -> dict[str, object]:
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    config = await AsyncBedrockAgentCoreConfig.resolve(endpoint_uri=endpoint, region="us-east-1", **keys)
    call = InvokeAgentRuntimeInput(
        agent_runtime_arn=arn,
        runtime_session_id=session,
        content_type="application/json",
        accept="text/event-stream",
        payload=run_input.encode(),
    )
    async with AsyncBedrockAgentCoreClient(config) as client:
        try:
            answer = await client.invoke_agent_runtime(call)
        except SmithyError as error:
            return {"failure": str(error)}
        lines = (await answer.response.read()).decode().split("\n")
        stop = StopRuntimeSessionInput(runtime_session_id=session, agent_runtime_arn=arn)
        stopped = (await client.stop_runtime_session(stop)).status_code
    types = [json.loads(line[5:])["type"] for line in lines if line.startswith("data:")]
    return {"types": types, "session": answer.runtime_session_id, "stopped": stopped}


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201 - what the test reads
