"""Options of a session: the server, the caller, and what goes with each run."""

from collections.abc import Iterable, Mapping
from typing import TypedDict

from ag_ui.core import Context, Tool

from agui_client.agentcore import SigV4
from agui_client.backoff import Retry
from agui_client.client_tools import ClientTool
from agui_client.transport import Provided

LOCAL_URL = "http://localhost:8080/invocations"


class SessionOptions(TypedDict, total=False):
    """Options of a session. All may be left out.

    Attributes:
        client_tools: functions of this program that the agent may call.
        context: ambient information for the agent.
        forwarded_props: values that are passed to the agent unchanged.
        state: the state that agent and client share, any JSON value.
        token: bearer token, or a function, plain or ``async``, that is asked for one before each connection.
        session_id: of AgentCore, 33 to 256 characters. One is made for a URL of AgentCore.
        headers: sent with each request.
        sigv4: signs requests to AgentCore, in place of a signer with the environment's credentials.
        retry: pauses and limits of connections that fail.
        tool_timeout: seconds of a client tool that has no limit of its own.
    """

    client_tools: Iterable[ClientTool | Tool]
    context: Iterable[Context]
    forwarded_props: Mapping[str, object]
    state: object
    token: Provided
    session_id: str
    headers: Mapping[str, str]
    sigv4: SigV4
    retry: Retry
    tool_timeout: float
