"""Ways to call a deployed agent: from the terminal, curl, Python, the page and a front end."""

from urllib.parse import quote

from agui_container.deploy.existing import DEFAULT_ENDPOINT
from agui_container.deploy.place import AwsPlace

FOR_CREDENTIALS = """# Terminal, with your AWS credentials
agui chat {arn}

# curl, with keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
curl -N '{url}' --aws-sigv4 'aws:amz:{region}:bedrock-agentcore' --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \\
  -H "X-Amz-Security-Token: $AWS_SESSION_TOKEN" -H 'Content-Type: application/json' \\
  -H "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id: $(uuidgen)" -d '{body}'

# Python, with your AWS credentials
from agui_client import SyncSession, agentcore_url
session = SyncSession.start("{prompt}", url=agentcore_url("{arn}"))
session.run()
print(session.transcript)

# The page, served here, in front of the deployed agent
agui chat --web {arn}

# A front end. A browser has no AWS credentials, so a server of yours signs for it (docs/typescript.md),
# or callers send tokens: set auth_discovery_url and its relatives in agui.toml, and deploy again.
"""

FOR_TOKENS = """# Terminal
agui chat {arn} --token "$TOKEN"

# curl
curl -N '{url}' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -H "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id: $(uuidgen)" -d '{body}'

# Python
from agui_client import SyncSession, agentcore_url
session = SyncSession.start("{prompt}", url=agentcore_url("{arn}"), token=TOKEN)
session.run()
print(session.transcript)

# The page, served here, in front of the deployed agent
agui chat --web {arn} --token "$TOKEN"

# A front end in the browser (docs/typescript.md)
import {{ ResumableHttpAgent }} from "@agui-container/client";
const agent = new ResumableHttpAgent({{ url: "{url}", token, sessionId: crypto.randomUUID() }});
"""


def how_to_call(place: AwsPlace, arn: str, endpoint: str, *, with_token: bool) -> str:
    """Return commands and code. They call the runtime by ``endpoint``."""
    domain = "amazonaws.com.cn" if place.partition == "aws-cn" else "amazonaws.com"
    host = f"https://bedrock-agentcore.{place.region}.{domain}"
    url = f"{host}/runtimes/{quote(arn, safe='')}/invocations?qualifier={endpoint}"
    prompt = "hello"
    body = f'{{"threadId":"t1","runId":"r1","messages":[{{"id":"m1","role":"user","content":"{prompt}"}}]}}'
    text = FOR_TOKENS if with_token else FOR_CREDENTIALS
    return text.format(arn=endpoint_arn(arn, endpoint), url=url, region=place.region, body=body, prompt=prompt)


def endpoint_arn(arn: str, endpoint: str) -> str:
    """Return the ARN of an endpoint. The ARN of the runtime itself means the endpoint that AgentCore makes."""
    return arn if endpoint == DEFAULT_ENDPOINT else f"{arn}/runtime-endpoint/{endpoint}"
