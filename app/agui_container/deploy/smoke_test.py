"""A run of the deployed agent through AgentCore's data plane.

Rule: the run is repeated under the same ids, which joins it, so a retry of boto3 never runs an agent twice.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any
from uuid import uuid4

from boto3.session import Session  # type: ignore[import-untyped]
from botocore import UNSIGNED  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from agui_container.deploy.steps import CallStep

READ_SECONDS = 900
"""Seconds of silence: a cold start, then what the agent needs for its first event."""


class RunFailed(Exception):
    """The run did not end well. The message says how it ended."""


def smoke_test(region: str | None, arn: str, endpoint: str, prompt: str, token: str | None) -> str:
    """Run the agent once, end its session, and return its text.

    Args:
        region: of the runtime.
        arn: of the runtime.
        endpoint: name of an endpoint.
        prompt: the message.
        token: bearer token, where the runtime asks for one. Without it the request is signed.

    Raises:
        RunFailed: the run failed, or AgentCore refused it.
    """
    run, end = smoke_calls(arn, endpoint, prompt)
    try:
        with closing(make_client(region, token)) as client, session_end(client, end.parameters):
            answer = client.invoke_agent_runtime(**run.parameters)
            with closing(answer["response"]) as stream:
                return text_of_run(read_events(stream))
    except ClientError as error:
        found = error.response["Error"]
        raise RunFailed(f"{found['Code']}: {found.get('Message', '')}") from None
    except BotoCoreError as error:
        raise RunFailed(str(error)) from None


def smoke_calls(arn: str, endpoint: str, prompt: str) -> tuple[CallStep, CallStep]:
    """Return the call that runs the agent once, and the one that ends its session."""
    named = {"agentRuntimeArn": arn, "qualifier": endpoint, "runtimeSessionId": str(uuid4())}
    message = {"id": str(uuid4()), "role": "user", "content": prompt}
    run_input = {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": [message], "protocolVersion": "1.0"}
    form = {"contentType": "application/json", "accept": "text/event-stream", "payload": json.dumps(run_input)}
    service = "bedrock-agentcore"
    return (
        CallStep(purpose="run", service=service, operation="InvokeAgentRuntime", parameters={**named, **form}),
        CallStep(purpose="end the session", service=service, operation="StopRuntimeSession", parameters=named),
    )


@contextmanager
def session_end(client: Any, named: Mapping[str, object]) -> Iterator[None]:  # noqa: ANN401 - a client of boto3
    """End a session after the run, however the run ended. A refusal is no failure: the idle timeout ends it then."""
    try:
        yield
    finally:
        with suppress(ClientError, BotoCoreError):
            client.stop_runtime_session(**named)


def make_client(region: str | None, token: str | None) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
    """Return a client of the data plane. boto3 knows no bearer tokens here, so the header is added to what it sends."""
    config = Config(read_timeout=READ_SECONDS, signature_version=UNSIGNED if token else None)
    client = Session(region_name=region).client("bedrock-agentcore", config=config)
    if token:

        def add_token(request: Any, **_: object) -> None:  # noqa: ANN401 - a request of botocore
            request.headers["Authorization"] = f"Bearer {token}"

        client.meta.events.register("before-send.bedrock-agentcore", add_token)
    return client


def read_events(stream: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a stream of botocore
    """Yield the events of an answer."""
    for line in stream.iter_lines(chunk_size=1):
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


def text_of_run(events: Iterator[dict[str, Any]]) -> str:
    """Return the text of a run. Raises ``RunFailed`` if it has no good end."""
    text, last = [], "nothing"
    for event in events:
        last = event["type"]
        if last == "TEXT_MESSAGE_CONTENT":
            text.append(event["delta"])
        if last == "RUN_ERROR":
            raise RunFailed(f"{event.get('code', 'RUN_ERROR')}: {event.get('message', '')}")
    if last != "RUN_FINISHED":
        raise RunFailed(f"the stream ended with {last} in place of RUN_FINISHED")
    return "".join(text)
