"""The run that tests a deployment."""

from contextlib import closing

from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from agui_client import AgentClientError, SessionOptions, SyncSession, agentcore_url

READ_SECONDS = 900.0
"""Seconds of a run: a cold start, then what the agent needs."""


class RunFailed(Exception):
    """The run that tests a deployment did not end well. The message says how it ended."""


def run_once(arn: str, prompt: str, token: str | None) -> str:
    """Run the agent once in a session of its own, which its idle timeout ends, and return its text.

    Raises:
        RunFailed: there is no answer.
    """
    options: SessionOptions = {"token": token} if token else {}
    try:
        with closing(SyncSession.start(prompt, url=agentcore_url(arn), **options)) as session:
            message = session.run(timeout=READ_SECONDS).latest_message
    except (AgentClientError, BotoCoreError, TimeoutError) as error:
        code = getattr(error, "code", None)
        raise RunFailed(f"{code}: {error}" if code else str(error)) from None
    return str(getattr(message, "content", None) or "")
