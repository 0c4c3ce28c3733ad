"""A protocol in one file: JSON over a WebSocket, one object per frame. docs/add-a-protocol.md explains it."""

from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import PROTOCOL_VERSION, EventType, RunAgentInput, UserMessage
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Batch
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.conversation.approvals import decision
from agui_container.transports.conversation.events import Event, Failed, Outcome, decoded_events
from agui_container.transports.conversation.loop import ConversationLoop
from agui_container.transports.conversation.pending import Answer, PendingCalls
from agui_container.transports.conversation.translator import Cancellation, Opening
from agui_container.transports.error_responses import error_response
from agui_container.transports.registration import Closers, HttpRegistration

Line = dict[str, object]


class LineTranslator:
    """Translates one question and its answer. Implements ``Translator``."""

    def __init__(self, thread_id: str, new_id: Callable[[], str]) -> None:
        self._thread_id = thread_id
        self._new_id = new_id
        self._asked: list[str] = []

    def open(self, request: Line) -> Opening[Line]:
        """Begin with ``{"say": TEXT}``."""
        text = request.get("say")
        if not isinstance(text, str):
            raise AppError(ErrorCode.VALIDATION_ERROR, "say: expected a text.")
        ids = {"thread_id": self._thread_id, "run_id": self._new_id()}
        message = UserMessage(id=self._new_id(), content=text)
        run_input = RunAgentInput(**ids, messages=[message], protocol_version=PROTOCOL_VERSION)
        return Opening(run_input, size=len(text))

    def feed(self, kind: EventType, event: Event) -> Sequence[Line]:
        """Show text, and nothing else."""
        return [{"text": event["delta"]}] if kind is EventType.TEXT_MESSAGE_CONTENT else []

    def ask(self, pending: PendingCalls) -> Sequence[Line]:
        """Ask for approvals. This client offers no tools of its own."""
        self._asked = list(pending.approvals)
        return [{"ask": request.name, "arguments": request.arguments} for request in pending.approvals.values()]

    def answers(self, message: Line) -> Sequence[Answer | Cancellation]:
        """Take ``{"approve": true}`` as the decision on all calls that were asked for."""
        match message:
            case {"approve": bool(is_approved)}:
                return [decision(call_id, is_approved=is_approved) for call_id in self._asked]
            case {"cancel": True}:
                return [Cancellation()]
        return []

    def refuse(self, _answer: Answer) -> Sequence[Line]:
        """Tell the client that another one has been faster."""
        return [{"error": "Nothing waits for this answer."}]

    def settle(self, _answers: Sequence[Answer]) -> Sequence[Line]:
        """Show nothing of decisions."""
        return []

    def end(self, outcome: Outcome) -> Sequence[Line]:
        """Tell the outcome."""
        word = type(outcome).__name__.lower()
        return [{"end": word, "error": outcome.error.message} if isinstance(outcome, Failed) else {"end": word}]


class LineConnection:
    """A socket as the loop uses it. Implements ``ClientConnection``."""

    is_open = True

    def __init__(self, socket: WebSocket) -> None:
        self.caller = caller_of(socket)
        self._socket = socket

    async def receive(self) -> Line:
        """Return the next object. Raises ``WebSocketDisconnect`` once the client has gone."""
        try:
            message = await self._socket.receive_json()
        except (KeyError, ValueError):  # a binary frame, or no JSON
            message = None
        return message if isinstance(message, dict) else {}

    async def send(self, messages: Sequence[Line]) -> None:
        """Send objects."""
        for message in messages:
            await self._socket.send_json(message)

    async def send_events(self, batch: Batch, translate: Callable[[EventType, Event], Iterable[Line]]) -> None:
        """Translate events and send them."""
        await self.send([line for kind, event in decoded_events(batch) for line in translate(kind, event)])

    def leave(self, subscription: Subscription) -> None:
        """Stop reading a run."""
        subscription.close()


def register(_settings: object) -> HttpRegistration:
    """Return the registration, for ``http_protocols`` in ``main.py``."""

    def routes(service: Service, _closers: Closers) -> list[BaseRoute]:
        async def talk(socket: WebSocket) -> None:
            await socket.accept()
            connection, thread_id = LineConnection(socket), service.new_id()
            try:
                while True:
                    translator = LineTranslator(thread_id, service.new_id)
                    await ConversationLoop(service, connection, translator).serve(await connection.receive())
            except* WebSocketDisconnect:
                pass  # AGUI_ON_DISCONNECT decides about an open run

        return [WebSocketRoute("/lines", talk)]

    return HttpRegistration("/lines", {"lines": "/lines"}, routes, error_response)
