"""The gRPC column of the error table, as grpclib's statuses."""

from grpclib.const import Status

from agui_container.protocol.errors import ERRORS, AppError

STATUSES = {code: Status[row.grpc] for code, row in ERRORS.items()}


def status_of(error: AppError) -> Status:
    """The status of a call that this error ends."""
    return STATUSES[error.code]
