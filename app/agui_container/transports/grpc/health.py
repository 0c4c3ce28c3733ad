"""The standard health service: a client learns whether it may call.

Rule: it says what ``/ping`` says: SERVING once the engine is initialised, NOT_SERVING before and while it drains.
Source: grpc.health.v1.
"""

import asyncio
from collections.abc import Callable, Collection

from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method
from grpclib.exceptions import GRPCError
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from agui_container.transports.grpc.call import Admission, Call, method

LOOK_SECONDS = 1.0
"""Between two looks for a client that watches."""

HealthCall = Call[HealthCheckRequest, HealthCheckResponse]


class Health:
    """``grpc.health.v1.Health``.

    Args:
        names: the services whose health can be asked for; the empty name is the whole server.
        is_serving: whether calls are taken now.
    """

    def __init__(self, names: Collection[str], is_serving: Callable[[], bool], admission: Admission) -> None:
        self._names = {"", *names}
        self._is_serving = is_serving
        self._admission = admission

    def __mapping__(self) -> dict[str, Method]:
        types = HealthCheckRequest, HealthCheckResponse
        unary, stream = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            "/grpc.health.v1.Health/Check": method(self.check, self._admission, *types, unary),
            "/grpc.health.v1.Health/Watch": method(self.watch, self._admission, *types, stream),
        }

    async def check(self, call: HealthCall) -> None:
        """Say how a service stands. Raises ``GRPCError`` NOT_FOUND for one that is not here."""
        request = await call.receive() or HealthCheckRequest()
        if request.service not in self._names:
            raise GRPCError(Status.NOT_FOUND, "There is no such service.")
        await call.send([HealthCheckResponse(status=self._status(request.service))])

    async def watch(self, call: HealthCall) -> None:
        """Say how a service stands, and whenever that changes, until the client leaves."""
        request = await call.receive() or HealthCheckRequest()
        told = None
        while True:
            status = self._status(request.service)
            if status != told:
                await call.send([HealthCheckResponse(status=status)])
                told = status
            await asyncio.sleep(LOOK_SECONDS)

    def _status(self, name: str) -> "HealthCheckResponse.ServingStatus.ValueType":
        if name not in self._names:
            return HealthCheckResponse.SERVICE_UNKNOWN
        return HealthCheckResponse.SERVING if self._is_serving() else HealthCheckResponse.NOT_SERVING
