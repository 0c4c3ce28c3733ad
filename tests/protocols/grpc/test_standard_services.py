"""Reflection and health, as grpcurl, buf and load balancers use them."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agui_container.protocols.gen import health_pb2, reflection_pb2
from tests.protocols.clients import Clients
from tests.protocols.grpc.client import GrpcClient

pytestmark = pytest.mark.wire

SERVICES = {"roz.v1.AgentService", "kontekst.AgentService", "kontekst.DaemonService"}


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_the_services_and_describes_them(clients: Clients, version: str) -> None:
    path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    call = clients.open(path, reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse)
    await call.send(list_services="*")
    listed = await call.until("list_services_response")
    assert {service.name for service in listed.service} == SERVICES
    for name in sorted(SERVICES):
        await call.send(file_containing_symbol=name)
        (data,) = (await call.until("file_descriptor_response")).file_descriptor_proto
        assert FileDescriptorProto.FromString(data).package in {"roz.v1", "kontekst"}
    await call.send(file_containing_symbol="no.Such")
    assert (await call.until("error_response")).error_code == Status.NOT_FOUND.value


async def checked(client: GrpcClient, service: str) -> int:
    request = health_pb2.HealthCheckRequest(service=service)
    return (await client.ask("/grpc.health.v1.Health/Check", request, health_pb2.HealthCheckResponse)).status


async def test_health_is_told_for_each_service(clients: Clients) -> None:
    for service in ("", *SERVICES):
        assert await checked(clients, service) == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(GRPCError) as unknown:
        await checked(clients, "no.Such")
    assert unknown.value.status is Status.NOT_FOUND
