"""The service itself, called as an edge calls it: no socket, no frames."""

import json
from collections.abc import AsyncGenerator

from agui_container.engine.engine import Engine
from agui_container.ports import Caller, session_label
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import CommandRequest, RunRequest, parse
from agui_container.run.subscription import Subscription
from agui_container.web.caller_middleware import SESSION_HEADER
from agui_container.web.requests import answer_command
from agui_core.commands import Attach
from tests.behaviour.client import Client, Refused, RunStream
from tests.engine.doubles import FakeClock, Json


class ReaderStream(RunStream):
    def __init__(self, service: Engine, reader: Subscription) -> None:
        super().__init__(service)
        self._reader = reader
        self._events = self._flat()

    async def _flat(self) -> AsyncGenerator[Envelope, None]:
        async for batch in self._reader:
            for envelope in batch.envelopes():
                yield envelope

    async def _receive(self) -> tuple[int, Json] | None:
        async for envelope in self._events:
            return envelope.seq, json.loads(envelope.data)
        await self.close()
        return None

    async def close(self) -> None:
        self._reader.close()
        await self._events.aclose()


class InProcess(Client):
    transport = "inprocess"

    def __init__(
        self,
        service: Engine,
        clock: FakeClock,
        headers: dict[str, str] | None = None,
        *,
        by_session: bool,
        limits_by_session: bool = False,
    ) -> None:
        super().__init__(service, clock, headers)
        self._by_session = by_session
        self._limits_by_session = limits_by_session

    def _caller(self) -> Caller:
        session = self.headers.get(SESSION_HEADER)
        return Caller(
            owner=f"session:{session}" if session and self._by_session else "everybody",
            request_id=self.headers.get("x-request-id", "request-1"),
            session_id=session,
            headers=self.headers,
            identity=f"session:{session_label(session)}" if session and self._limits_by_session else "",
        )

    async def start(self, body: Json | str) -> RunStream:
        try:
            stream = ReaderStream(self.service, await self._reader(body))
        except AppError as error:
            raise self._refused(error) from None
        self.streams.append(stream)
        return stream

    async def _reader(self, body: Json | str) -> Subscription:
        asked = parse(body.encode() if isinstance(body, str) else json.dumps(body).encode())
        if isinstance(asked, RunRequest):
            return await self.service.admit(asked.run_input, self._caller(), asked.size)
        assert isinstance(asked.command, Attach)
        return await self.service.attach(
            self._caller(), asked.command.thread_id, asked.command.run_id, asked.command.after
        )

    async def command(self, body: Json) -> Json:
        try:
            asked = parse(json.dumps(body).encode())
            assert isinstance(asked, CommandRequest)
            result = await answer_command(self.service, asked.command, self._caller())
        except AppError as error:
            raise self._refused(error) from None
        return {"command": asked.command.type, **result}

    def _refused(self, error: AppError) -> Refused:
        return Refused(error.code, error.message, self._caller().request_id, error.wait_seconds)
