"""Calls of roz's services: sessions of the releases 0.2 and 1.0, and teams."""

from typing import Any

import grpc

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.grpc.client import GrpcCall

SESSION = "/roz.v1.AgentService/StreamSession"


class RozTalk(GrpcCall[pb.SessionRequest, pb.SessionResponse]):
    """One session. A message of release 1.0 is known by the name of its event."""

    def __init__(self, channel: grpc.Channel, **options: Any) -> None:
        super().__init__(channel, SESSION, pb.SessionRequest, pb.SessionResponse, "response", **options)

    def kind(self, message: pb.SessionResponse) -> str:
        kind = super().kind(message)
        return f"1.0 {message.session_event.WhichOneof('typed_event')}" if kind == "session_event" else kind

    def next(self) -> tuple[str, Any]:
        message = next(self.call)
        self.seen.append(message)
        kind = self.kind(message)
        if kind.startswith("1.0 "):
            assert message.session_event.event_type == kind[4:]
            return kind, getattr(message.session_event, kind[4:])
        return kind, getattr(message, kind)

    def say(self, text: str, **fields: Any) -> "RozTalk":
        self.send(user_message=pb.UserMessage(content=text, **fields))
        return self

    @property
    def old(self) -> list[str]:
        """Kinds that a client of release 0.2 reads."""
        return [kind for kind in self.kinds if not kind.startswith("1.0 ")]

    @property
    def new(self) -> list[str]:
        """Kinds that a client of release 1.0 reads."""
        return [kind[4:] for kind in self.kinds if kind.startswith("1.0 ")]

    def all(self, kind: str) -> list[Any]:
        return [getattr(message, kind) for message in self.seen if message.HasField(kind)]


def start_session(channel: grpc.Channel, metadata: Any = (), timeout: float = 30, **fields: Any) -> RozTalk:
    talk = RozTalk(channel, metadata=metadata, timeout=timeout)
    talk.send(start=pb.StartSession(environment_id="here", **fields))
    talk.until("session_started")
    return talk


def session_of(talk: RozTalk) -> str:
    """The id of a session, which is its thread's."""
    session: str = talk.all("session_started")[0].session_id
    return session


def wait_for_turn(talk: RozTalk) -> Any:
    """The end of a turn, and what is said behind it."""
    complete = talk.until("turn_complete")
    assert talk.until("activity_update").state == "idle"
    return complete


def schema(name: str, **fields: Any) -> pb.ToolSchema:
    made = pb.ToolSchema(name=name, description=f"The tool {name}.", **fields)
    made.parameters_schema.update({"type": "object", "properties": {"x": {"type": "number"}}})
    return made


def wait_for_approval(talk: RozTalk) -> str:
    """Return the id of a waiting call, as a client of release 0.2 gets it."""
    while True:
        update = talk.until("activity_update")
        if update.state == "waiting_approval":
            return str(update.detail)


def kinds_of(team: list[pb.TeamEvent]) -> list[str]:
    return [str(event.WhichOneof("event")) for event in team]


def events_until(events: Any, kind: str, count: int = 1) -> list[pb.TeamEvent]:
    """The events up to one of this kind, or up to so many of them."""
    team: list[pb.TeamEvent] = []
    while sum(event.HasField(kind) for event in team) < count:
        team.append(next(events))
    return team


def watch_team(channel: grpc.Channel, task_id: str, timeout: float = 30) -> Any:
    """Watch a run to its end, or a thread until the test cancels the call."""
    call = channel.unary_stream(
        "/roz.v1.AgentService/WatchTeam",
        request_serializer=pb.WatchTeamRequest.SerializeToString,
        response_deserializer=pb.TeamEvent.FromString,
    )
    return call(pb.WatchTeamRequest(task_id=task_id), timeout=timeout)
