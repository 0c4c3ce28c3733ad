"""Errors of a request that are no answers of the server.

The ``mcp`` package passes a lost connection, a result over the limit and a session that the server forgot to its caller
as errors like any other. The transports mark them, because the texts and codes alone are not enough: servers use them
too.
"""

import re
from enum import Enum, auto
from typing import Final

from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    RequestId,
)

MAX_MESSAGE_BYTES = 10_000_000
"""Bytes of one message of a server. A photo takes a few million; AgentCore Gateway allows 6 MB."""

CONNECTION_LOST: Final = ("Connection closed", "SSE stream ")
"""Prefixes of the package's own errors for a lost connection."""

PARSER_FAILED: Final = ("Failed to parse SSE message: ", "Failed to parse JSON response: ")
"""Prefixes of the package's own errors for an answer that is no message."""

SESSION_WORDS: Final = re.compile(r"\bsession\b|\binitiali[sz]", re.IGNORECASE)
"""Words with which servers refuse a session in an error of JSON-RPC. No code is reserved for it."""


class McpFault(Enum):
    """Kind of an error that is no answer of the server."""

    CONNECTION_LOST = auto()
    """The connection was lost before the server answered. The request may have been processed."""
    SESSION_REFUSED = auto()
    """The server does not know the session. It has not processed the request."""
    TOO_LARGE = auto()
    """The answer has more than ``MAX_MESSAGE_BYTES``. The request was processed."""
    UNREADABLE = auto()
    """The answer is no message of JSON-RPC. The request was processed."""


def fault_of(error: MCPError) -> McpFault | None:
    """Return the fault, or None if the error is the server's answer."""
    if isinstance(error.data, McpFault):
        return error.data
    if error.code == CONNECTION_CLOSED and error.message.startswith(CONNECTION_LOST):
        return McpFault.CONNECTION_LOST
    if error.code == PARSE_ERROR and error.message.startswith(PARSER_FAILED):
        return McpFault.UNREADABLE
    return None


def failed_answer(request: RequestId, fault: McpFault) -> SessionMessage:
    """Return the message that ends a request with a fault."""
    error = ErrorData(code=INTERNAL_ERROR, message=fault.name, data=fault)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))


def may_refuse_session(error: ErrorData) -> bool:
    """Return false if the error is about the request itself: the server would not look at that without a session."""
    return error.code not in {INVALID_PARAMS, METHOD_NOT_FOUND}


def names_session(error: ErrorData) -> bool:
    """Return true if an error that came with status 200 says that the session is unknown."""
    return may_refuse_session(error) and SESSION_WORDS.search(error.message) is not None
