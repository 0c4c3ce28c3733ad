"""Reflection and health, as grpcurl, buf and load balancers use them."""

import queue
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.health.v1 import health_pb2
from grpclib.reflection.v1 import reflection_pb2 as v1
from grpclib.reflection.v1alpha import reflection_pb2 as v1alpha

from agui_container.transports.caller_middleware import SESSION_HEADER
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.grpc.client import WAIT
from tests.grpc.conftest import ASSISTANT, Dial
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

SERVICES = {"roz.v1.AgentService", "kontekst.AgentService", "kontekst.DaemonService"}


def reflected(channel: grpc.Channel, package: Any, *requests: Any) -> list[Any]:
    version = "v1alpha" if package is v1alpha else "v1"
    call = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=package.ServerReflectionRequest.SerializeToString,
        response_deserializer=package.ServerReflectionResponse.FromString,
    )
    return list(call(iter(requests), timeout=WAIT))


@requirement("grpc.standard")
@pytest.mark.parametrize("package", [v1, v1alpha], ids=["v1", "v1alpha"])
def test_reflection_lists_the_services_and_describes_them(channel: grpc.Channel, package: Any) -> None:
    request = package.ServerReflectionRequest
    asked = [request(list_services="*"), *(request(file_containing_symbol=name) for name in sorted(SERVICES))]
    listed, *files = reflected(channel, package, *asked)
    assert {service.name for service in listed.list_services_response.service} == SERVICES
    for answer in files:
        (data,) = answer.file_descriptor_response.file_descriptor_proto
        assert FileDescriptorProto.FromString(data).package in {"roz.v1", "kontekst"}
    (missing,) = reflected(channel, package, request(file_containing_symbol="no.Such"))
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@requirement("grpc.standard")
@pytest.mark.parametrize("package", [v1, v1alpha], ids=["v1", "v1alpha"])
def test_a_request_for_reflection_that_is_too_large_is_refused(channel: grpc.Channel, package: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        reflected(channel, package, package.ServerReflectionRequest(file_by_filename="x" * 100_000))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def checked(channel: grpc.Channel, service: str) -> int:
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return int(call(health_pb2.HealthCheckRequest(service=service), timeout=WAIT).status)


@requirement("grpc.standard")
def test_health_is_told_for_each_service(channel: grpc.Channel) -> None:
    for service in ("", *SERVICES):
        assert checked(channel, service) == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as unknown:
        checked(channel, "no.Such")
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


def test_calls_of_one_caller_are_bounded_and_health_checks_pass(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT, AGUI_LIMIT_BY="session", AGUI_CALLER_LIMITS='{"sockets": 1}') as server:
        channel = dial(server)
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        watches = [watch(health_pb2.HealthCheckRequest(), timeout=WAIT) for _ in range(3)]
        assert {next(each).status for each in watches} == {health_pb2.HealthCheckResponse.SERVING}
        session = channel.stream_stream(
            "/roz.v1.AgentService/StreamSession",
            request_serializer=roz.SessionRequest.SerializeToString,
            response_deserializer=roz.SessionResponse.FromString,
        )
        start = roz.SessionRequest(start=roz.StartSession())
        requests = queue.SimpleQueue[roz.SessionRequest]()
        requests.put(start)
        named = [(SESSION_HEADER, "session")]
        held = session(iter(requests.get, None), timeout=WAIT, metadata=named)
        assert next(held).HasField("session_started")
        with pytest.raises(grpc.RpcError) as refused:
            next(session(iter([start]), timeout=WAIT, metadata=named))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "1 open sockets for one identity (AGUI_CALLER_LIMITS, sockets)" in refused.value.details()
        assert checked(channel, "") == health_pb2.HealthCheckResponse.SERVING
        requests.put(roz.SessionRequest(cancel_session=roz.CancelSession()))


@requirement("grpc.standard", "grpc.drain")
def test_a_watch_of_health_ends_with_the_server(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server:
        call = dial(server).unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        watching = call(health_pb2.HealthCheckRequest(), timeout=WAIT)
        assert next(watching).status == health_pb2.HealthCheckResponse.SERVING
        server.term()
        with pytest.raises(grpc.RpcError) as ended:
            list(watching)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert server.wait() == 0
