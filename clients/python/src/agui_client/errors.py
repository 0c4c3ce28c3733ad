"""Errors of this package.

Rule: an error that the server sent keeps the server's code. An error of the network says how often it was tried. Every
error is an ``AgentClientError``, but for a ``timeout`` of yours, which is Python's own ``TimeoutError``.
"""


class AgentClientError(Exception):
    """Base class of every error of this package."""


class RunRefusedError(AgentClientError):
    """The server refused a run or a command, and started no run.

    Attributes:
        code: of the server's error table, such as ``THREAD_BUSY``; ``HTTP_403`` and the like come from a gateway.
        retryable: True if the same request may succeed later.
        request_id: identifies the request in the server's log.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, request_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.request_id = request_id


class RunFailedError(AgentClientError):
    """A run ended with RUN_ERROR.

    Attributes:
        code: of the server's error table, such as ``AGENT_ERROR``. None if the server gave none.
        retryable: True if the server says that another run may succeed.
        request_id: identifies the request in the server's log. None if the server gave none.
    """

    def __init__(
        self, code: str | None, message: str, *, retryable: bool = False, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.request_id = request_id


class ConnectionLostError(AgentClientError):
    """There was no connection for too long, or the run of a connection that dropped cannot be continued.

    Attributes:
        attempts: failed connections in a row.
    """

    def __init__(self, message: str, attempts: int) -> None:
        super().__init__(message)
        self.attempts = attempts


class CancelTimeoutError(AgentClientError):
    """The server did not end a cancelled run in time. The run may still be open there."""


class CredentialsError(AgentClientError):
    """There are no AWS credentials for a signature, or they cannot be used."""


class UnsupportedError(AgentClientError):
    """The server's capabilities do not name a feature that was asked for."""


class Declined(Exception):
    """Raised by a client tool or by a handler of interrupts: the person does not want this.

    A call gets a declined result, and an interrupt is abandoned.
    """


class ConnectionDropped(AgentClientError):
    """A connection failed, and another attempt may succeed. Users see this error only as a cause.

    Attributes:
        was_sent: False if the server cannot have got the request.
    """

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent
