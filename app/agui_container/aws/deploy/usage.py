"""Ways to call a deployed agent, and the run that tests a deployment."""

import json
from contextlib import closing, suppress

import httpx
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from agui_client import AgentClientError, SessionOptions, SigV4, SyncSession, agentcore_url, new_session_id
from agui_client.agentcore import SESSION_HEADER, agentcore_region
from agui_container.aws.deploy.deployment import DEFAULT_ENDPOINT

READ_SECONDS = 900.0
"""Seconds of a run: a cold start, then what the agent needs."""

WAYS = """# Terminal{note}
agui chat {arn}{option}

# curl{keys}
curl -N '{url}' {authorization} -H 'Content-Type: application/json' \\
  -H "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id: $(uuidgen)" -d '{body}'

# Python{note}
from agui_client import SyncSession, agentcore_url
session = SyncSession.start("hello", url=agentcore_url("{arn}"){argument})
session.run()
print(session.transcript)

# The page, served here, in front of the deployed agent
agui chat --web {arn}{option}

# A front end{front_end}
"""
FOR_CREDENTIALS = {
    "note": ", with your AWS credentials",
    "option": "",
    "keys": ", with keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "authorization": "--aws-sigv4 'aws:amz:{region}:bedrock-agentcore' --user "
    '"$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \\\n  -H "X-Amz-Security-Token: $AWS_SESSION_TOKEN"',
    "argument": "",
    "front_end": ". A browser has no AWS credentials, so a server of yours signs for it (docs/clients.md),\n"
    "# or callers send tokens: set auth_discovery_url and its relatives in agui.toml, and deploy again.",
}
FOR_TOKENS = {
    "note": "",
    "option": ' --token "$TOKEN"',
    "keys": "",
    "authorization": '-H "Authorization: Bearer $TOKEN"',
    "argument": ", token=TOKEN",
    "front_end": ' in the browser (docs/clients.md)\nimport {{ ResumableHttpAgent }} from "@agui-container/client";\n'
    'const agent = new ResumableHttpAgent({{ url: "{url}", token, sessionId: crypto.randomUUID() }});',
}
BODY = {"threadId": "t1", "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "hello"}]}


class RunFailed(Exception):
    """The run that tests a deployment did not end well. The message says how it ended."""


def how_to_call(arn: str, region: str, *, with_token: bool) -> str:
    """Return commands and code that call a runtime, or an endpoint of it."""
    url = agentcore_url(arn)
    ways = FOR_TOKENS if with_token else FOR_CREDENTIALS
    known = {name: text.format(region=region, url=url) for name, text in ways.items()}
    return WAYS.format(arn=arn, url=url, body=json.dumps(BODY, separators=(",", ":")), **known)


def endpoint_arn(arn: str, endpoint: str) -> str:
    """Return the ARN of an endpoint. The ARN of the runtime itself means the endpoint that AgentCore makes."""
    return arn if endpoint == DEFAULT_ENDPOINT else f"{arn}/runtime-endpoint/{endpoint}"


def run_once(arn: str, endpoint: str, prompt: str, token: str | None) -> str:
    """Run the agent once, end its session, and return its text. Raises ``RunFailed``.

    A session that cannot be ended is no failure, because its idle timeout ends it.
    """
    url, session_id = agentcore_url(arn, qualifier=endpoint), new_session_id()
    options: SessionOptions = {"session_id": session_id, **({"token": token} if token else {})}
    try:
        with closing(SyncSession.start(prompt, url=url, **options)) as session:
            message = session.run(timeout=READ_SECONDS).latest_message
    except (AgentClientError, BotoCoreError, TimeoutError) as error:
        code = getattr(error, "code", None)
        raise RunFailed(f"{code}: {error}" if code else str(error)) from None
    finally:
        headers = {SESSION_HEADER: session_id, **({"Authorization": f"Bearer {token}"} if token else {})}
        auth = None if token else SigV4(agentcore_region(url) or "")
        with suppress(httpx.HTTPError, AgentClientError, BotoCoreError):
            httpx.post(url.replace("/invocations?", "/stopruntimesession?"), headers=headers, auth=auth)
    return str(getattr(message, "content", None) or "")
