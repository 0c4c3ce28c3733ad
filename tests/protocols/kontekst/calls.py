"""Calls of kontekst's services, as a client of the seed's release makes them."""

from typing import Any

import grpc

from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.protocols.grpc.client import WAIT, GrpcCall

RunTalk = GrpcCall[pb.RunCommand, pb.RunEvent]


def open_run(channel: grpc.Channel, **options: Any) -> RunTalk:
    return GrpcCall(channel, "/kontekst.AgentService/Run", pb.RunCommand, pb.RunEvent, "event", **options)


def start_run(channel: grpc.Channel, prompt: str = "", metadata: Any = (), **fields: Any) -> RunTalk:
    return open_run(channel, metadata=metadata).send(start=pb.StartRunCommand(prompt=prompt, **fields))


def unary(channel: grpc.Channel, method: str, request: Any, reply: Any, **options: Any) -> Any:
    call = channel.unary_unary(
        f"/kontekst.DaemonService/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return call(request, timeout=WAIT, **options)
