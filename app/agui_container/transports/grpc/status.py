"""The gRPC column of the error table, as grpclib's statuses."""

from grpclib.const import Status

from agui_container.protocol.errors import ERRORS, AppError

STATUSES = {code: Status[row.grpc] for code, row in ERRORS.items()}


def status_of(error: AppError) -> Status:
    """Return the status for a call that ends with this error."""
    return STATUSES[error.code]
