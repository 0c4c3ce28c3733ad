"""The standard health service.

Rule: the status agrees with ``/ping``. SERVING once the engine is initialised; NOT_SERVING before, and while the engine
drains. Source: grpc.health.v1.
"""

import asyncio
from collections.abc import Callable, Collection

from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method
from grpclib.exceptions import GRPCError

from agui_container.protocols.gen.grpc.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from agui_container.protocols.grpc.call import Call, CallAdmission, method

WATCH_SECONDS = 1.0
"""Seconds between two checks for a client that watches."""

HealthCall = Call[HealthCheckRequest, HealthCheckResponse]


class HealthService:
    """``grpc.health.v1.Health``. The empty name of ``names`` stands for the whole server."""

    def __init__(self, names: Collection[str], is_serving: Callable[[], bool], admission: CallAdmission) -> None:
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
        request = await call.receive_request()
        if request.service not in self._names:
            raise GRPCError(Status.NOT_FOUND, "There is no such service.")
        await call.send([HealthCheckResponse(status=self._status(request.service))])

    async def watch(self, call: HealthCall) -> None:
        request = await call.receive_request()
        last_status = None
        while True:
            status = self._status(request.service)
            if status != last_status:
                await call.send([HealthCheckResponse(status=status)])
                last_status = status
            await asyncio.sleep(WATCH_SECONDS)

    def _status(self, name: str) -> HealthCheckResponse.ServingStatus:
        if name not in self._names:
            return HealthCheckResponse.SERVICE_UNKNOWN
        return HealthCheckResponse.SERVING if self._is_serving() else HealthCheckResponse.NOT_SERVING
