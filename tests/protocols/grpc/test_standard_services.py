"""Reflection and health, as grpcurl, buf and load balancers use them."""

from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from agui_container.protocols.gen import health_pb2, reflection_pb2
from tests.protocols.grpc.client import WAIT

pytestmark = pytest.mark.wire

SERVICES = {"roz.v1.AgentService", "kontekst.AgentService", "kontekst.DaemonService"}


def reflected(channel: grpc.Channel, version: str, *requests: Any) -> list[Any]:
    call = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    return list(call(iter(requests), timeout=WAIT))


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_lists_the_services_and_describes_them(channel: grpc.Channel, version: str) -> None:
    request = reflection_pb2.ServerReflectionRequest
    asked = [request(list_services="*"), *(request(file_containing_symbol=name) for name in sorted(SERVICES))]
    listed, *files = reflected(channel, version, *asked)
    assert {service.name for service in listed.list_services_response.service} == SERVICES
    for answer in files:
        (data,) = answer.file_descriptor_response.file_descriptor_proto
        assert FileDescriptorProto.FromString(data).package in {"roz.v1", "kontekst"}
    (missing,) = reflected(channel, version, request(file_containing_symbol="no.Such"))
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def checked(channel: grpc.Channel, service: str) -> int:
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return int(call(health_pb2.HealthCheckRequest(service=service), timeout=WAIT).status)


def test_health_is_told_for_each_service(channel: grpc.Channel) -> None:
    for service in ("", *SERVICES):
        assert checked(channel, service) == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as unknown:
        checked(channel, "no.Such")
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
