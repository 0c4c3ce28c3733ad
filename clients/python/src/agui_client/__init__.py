"""A client for AG-UI servers: ``Session`` for async code, ``SyncSession`` for scripts and notebooks.

The models of messages and events are those of ``ag_ui.core``. See the README.
"""

import logging

from ag_ui.core import Interrupt

from agui_client.agentcore import SigV4, agentcore_url, new_session_id, presigned_url
from agui_client.backoff import Reconnect, Retry
from agui_client.client_tools import ClientTool, ClientToolResult, ClientToolResultStatus, client_tool
from agui_client.content import attachment, user_message
from agui_client.errors import (
    AgentClientError,
    CancelTimeoutError,
    ConnectionLostError,
    CredentialsError,
    Declined,
    RunFailedError,
    RunRefusedError,
    UnsupportedError,
)
from agui_client.events import ToolCallEvent
from agui_client.interrupts import DECLINE, Approval, Decision
from agui_client.session import Feedback, Session
from agui_client.session_options import LOCAL_URL, SessionOptions
from agui_client.session_state import Outcome, SessionStatus
from agui_client.sync_session import SyncSession
from agui_core.commands import FeedbackCategory, FeedbackSentiment
from agui_core.function_schema import ToolDefinitionError

logging.getLogger(__name__).addHandler(logging.NullHandler())  # a program that sets up no logging prints nothing

__all__ = [
    "DECLINE",
    "LOCAL_URL",
    "AgentClientError",
    "Approval",
    "CancelTimeoutError",
    "ClientTool",
    "ClientToolResult",
    "ClientToolResultStatus",
    "ConnectionLostError",
    "CredentialsError",
    "Decision",
    "Declined",
    "Feedback",
    "FeedbackCategory",
    "FeedbackSentiment",
    "Interrupt",
    "Outcome",
    "Reconnect",
    "Retry",
    "RunFailedError",
    "RunRefusedError",
    "Session",
    "SessionOptions",
    "SessionStatus",
    "SigV4",
    "SyncSession",
    "ToolCallEvent",
    "ToolDefinitionError",
    "UnsupportedError",
    "agentcore_url",
    "attachment",
    "client_tool",
    "new_session_id",
    "presigned_url",
    "user_message",
]
