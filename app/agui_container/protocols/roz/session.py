"""One session of a roz client. Requests are received during a turn, and turns run one after the other.

Rule: this module does I/O; ``client_messages`` and ``run_inputs`` translate, and each turn is a
conversation. An invalid request is answered by an error and does not affect the rest of the session.
"""

import asyncio
import logging
import time
from typing import NamedTuple

from agui_container.engine.engine import Engine
from agui_container.log_values import format_fields
from agui_container.ports.records import ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down, validation_error
from agui_container.protocols.conversation import following
from agui_container.protocols.conversation.approvals import ApprovalRequest
from agui_container.protocols.conversation.loop import ConversationLoop
from agui_container.protocols.conversation.pending import Answer, PendingCalls, answers_call, call_id_of
from agui_container.protocols.conversation.translator import Cancellation
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.grpc.call import Call, check_id
from agui_container.protocols.roz.options import RozOptions
from agui_container.protocols.roz.run_inputs import (
    ClientTools,
    OpenCallAnswer,
    QueuedMessage,
    RozTurn,
    SessionStart,
    ToolsByName,
    read_message,
    read_start,
    tools_by_name,
    turn_request,
)
from agui_container.protocols.roz.server_messages import RozEncoder, Usage, struct_of
from agui_container.protocols.roz.translator import RozTranslator, answers_of
from agui_container.threads import offload_if_large
from agui_core.commands import FeedbackSentiment, ThreadsFeedback

SessionCall = Call[pb.SessionRequest, pb.SessionResponse]

THREAD_METADATA = "agui-thread-id"
"""Metadata key of the call for the thread to continue. Without it, a session begins a new thread."""

SHOWN_TOKENS = ("input_tokens", "output_tokens")

REACT, OODA = "react", "ooda_re_act"
"""Modes that roz's page names. Agents that register no modes answer both in the same way."""
MAX_WAITING = 16
"""Messages that may wait for their turn."""
BUSY = "Another message of this session is being answered."

POSITIVE = frozenset({"positive", "thumbs_up", "up", "good", "like", "+1", "1"})
NEGATIVE = frozenset({"negative", "thumbs_down", "down", "bad", "dislike", "-1"})

logger = logging.getLogger(__name__)


class Turn(NamedTuple):
    """The turn that is being answered."""

    loop: ConversationLoop[RozTurn, pb.SessionRequest, pb.SessionResponse]
    translator: RozTranslator
    cause: QueuedMessage | OpenCallAnswer


class Session:
    def __init__(self, call: SessionCall, service: Engine, options: RozOptions, wire: RozEncoder) -> None:
        self._call = call
        self._service = service
        self._options = options
        self._wire = wire
        self._start: SessionStart | None = None
        self._thread_id = ""
        self._tools = ClientTools(options.permissions)
        self._usage = Usage()
        self._context = 0, 0
        self._answers: dict[str, str] = {}
        """Ids of the answers, by the ids of their messages, for feedback."""
        self._waiting: list[QueuedMessage | OpenCallAnswer] = []
        self._refused: list[str] = []
        """Ids of refused messages whose turns are not completed yet."""
        self._changed = asyncio.Event()
        self._turns = 0
        self._turn: Turn | None = None
        self._is_over = self._is_half_closed = False
        self._cancels_next = False
        """True if the client has cancelled a turn that has not begun."""

    @property
    def thread(self) -> ThreadKey:
        return ThreadKey(self._call.caller.owner, self._thread_id)

    async def serve(self) -> None:
        try:
            await self._serve()
            if self._start is not None:
                tokens = {name: self._usage[name] for name in SHOWN_TOKENS}
                completed = pb.SessionCompletedPayload(summary="The session is over.", **tokens)
                await self._call.send(self._wire.encode(completed))
        except asyncio.CancelledError:
            if self._call.is_open and not self._service.is_serving():
                await self._call.send(self._wire.session_failed(shutting_down()))
            raise

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            answer_task = tasks.create_task(self._answer_messages(), name="roz turns")
            keepalive = tasks.create_task(self._keep_alive(), name="roz keepalive")
            try:
                await self._receive_requests()
                self._half_close()
                await asyncio.wait([answer_task])
            finally:
                keepalive.cancel()
                answer_task.cancel()

    def _half_close(self) -> None:
        self._is_half_closed = True
        self._changed.set()
        if self._turn is not None:
            self._turn.loop.half_close(cancels=False)

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            silence = loop.time() - self._call.last_sent_at
            if silence < self._options.keepalive:
                await asyncio.sleep(self._options.keepalive - silence)
                continue
            await self._call.send([pb.SessionResponse(keepalive=self._keepalive())])

    def _keepalive(self) -> pb.Keepalive:
        """Return the tokens of the context, or else of the session so far, and the size of the context if known."""
        turn = None if self._turn is None else self._turn.translator
        used, size = turn.context if turn is not None and turn.context else self._context
        usages = [self._usage] if turn is None else [self._usage, turn.usage]
        requested = self._start.context_tokens if self._start else 0
        budgets = [tokens for tokens in (requested, self._options.context_tokens) if tokens]
        return pb.Keepalive(
            tokens_used=used or sum(usage[name] for usage in usages for name in SHOWN_TOKENS),
            tokens_max=size or min(budgets, default=None),
        )

    # --- turns ---

    async def _answer_messages(self) -> None:
        while True:
            while not self._waiting:
                if self._is_half_closed:
                    return
                self._changed.clear()
                await self._changed.wait()
            await self._answer_one(self._waiting.pop(0))
            await self._complete_refused()

    async def _answer_one(self, message: QueuedMessage | OpenCallAnswer) -> None:
        self._turns += 1
        translator = self._translator(message.message_id, {})
        turn = ConversationLoop(self._service, self._call, translator)
        self._turn = Turn(turn, translator, message)
        if self._is_half_closed:
            turn.half_close(cancels=False)
        try:
            await self._call.send(translator.begin(self._turns))
            request = self._request_for(message)
            if isinstance(message, OpenCallAnswer):
                await turn.answer_open_call(request, message.call, message.answer)
            else:
                is_superseded = self._waiting and self._options.on_busy == "interrupt"
                if is_superseded or self._cancels_next:
                    await turn.cancel()  # the thread gets this message all the same
                self._cancels_next = False
                await turn.answer(request)
        finally:
            self._turn = None
        if turn.is_admitted and self._start is not None:
            self._start = self._start.without_history()
        if translator.last_message_id:
            self._answers[message.message_id] = translator.last_message_id
        self._usage += translator.usage
        self._context = translator.context or self._context

    def _request_for(self, message: QueuedMessage | OpenCallAnswer) -> RozTurn:
        assert self._start is not None  # noqa: S101 - messages wait only in a session that has begun
        return turn_request(self._start, message, self._tools, self._thread_id, self._service.new_id())

    def _translator(self, message_id: str, tools: ToolsByName) -> RozTranslator:
        return RozTranslator(self._wire, message_id, tools, self._options.permissions, time.time)

    async def _complete_refused(self) -> None:
        """Complete the turns of refused messages, after the one that is being answered, so that no client hangs."""
        refused, self._refused = self._refused, []
        for message_id in refused:
            await self._call.send(self._wire.refused_turn_finished(message_id))

    def _agent_mode(self, mode: str) -> str:
        registered = (self._service.capabilities.custom or {}).get("aiModes", ())
        modes: dict[str, str] = {REACT: REACT, **({name: name for name in registered} or {OODA: REACT})}
        if not mode or mode in modes:
            return modes.get(mode, mode)
        raise validation_error(f"ai_mode: '{mode[:64]}' is not a mode of this agent; known are {', '.join(modes)}.")

    # --- incoming messages ---

    async def _receive_requests(self) -> None:
        while not self._is_over and (request := await self._call.receive()) is not None:
            size = request.ByteSize()
            try:
                await self._handle(request, size)
            except AppError as error:
                await self._call.send(self._wire.session_rejected(error))

    async def _handle(self, request: pb.SessionRequest, size: int) -> None:  # noqa: C901 - a case for each kind
        match kind := request.WhichOneof("request"):
            case "ping":
                await self._call.send([pb.SessionResponse(pong=pb.Pong())])
            case "start":
                await self._begin_session(request.start, size)
            case None | "webrtc_answer" | "ice_candidate" | "camera_request":
                logger.info("roz request ignored %s", format_fields({"kind": kind}))
            case _ if self._start is None:
                raise validation_error(f"{kind}: the session has not begun; send start first.")
            case "user_message":
                await self._take_message(request.user_message, size)
            case "tool_result" | "permission_decision" | "cancel_turn":
                await self._answer_calls(kind, request, size)
            case "register_tools":
                registered = request.register_tools
                new = await offload_if_large(size, tools_by_name, registered.tools, registered.source)
                self._tools.register(registered.source, new, registered.system_context)
                if self._turn is not None:
                    self._turn.loop.offer(self._request_for(self._turn.cause))
            case "feedback":
                await self._store_feedback(request.feedback)
            case "cancel_session":
                self._is_over = True
                self._waiting.clear()
                if self._turn is not None:
                    await self._turn.loop.cancel()

    async def _answer_calls(self, kind: str, request: pb.SessionRequest, size: int) -> None:
        for answer in answers_of(request):
            if isinstance(answer, Cancellation) and self._turn is not None:
                await self._turn.loop.cancel()
            elif isinstance(answer, Cancellation):
                self._cancels_next = bool(self._waiting)
            elif self._turn is not None and isinstance(self._turn.cause, QueuedMessage):
                await self._turn.loop.take([answer])
            else:
                await self._answer_open_call(kind, answer, size)

    async def _answer_open_call(self, kind: str, answer: Answer, size: int) -> None:
        """Answer a call that another session, or an earlier one of the client, has left open, in a turn of its own."""
        calls = await following.open_calls(self._service, self._call.caller, self._thread_id)
        call = calls.get(call_id_of(answer))
        if call is None or not answers_call(answer, call):
            raise validation_error(f"{kind}: no call waits for it.")
        if len(self._waiting) >= MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, BUSY)
        self._wait_for_turn(OpenCallAnswer(self._service.new_id(), call, answer, size))

    async def _begin_session(self, start: pb.StartSession, size: int) -> None:
        self._check_start(start)
        model = start.model or self._options.model
        if start.camera_ids or start.enable_video:
            logger.info("roz cameras ignored %s", format_fields({"count": len(start.camera_ids)}))
        chosen = "" if model == self._options.model else model
        begun, tools = await offload_if_large(size, read_start, start, chosen, size)
        continued = self._call.metadata.get(THREAD_METADATA)
        thread_id = continued or self._service.new_id()
        check_id(THREAD_METADATA, thread_id)
        if continued and begun.history and await self._service.threads.last_message(self._call.caller, thread_id):
            # The history would replace the messages. The first turn checks it again.
            raise validation_error(f"history: must be empty, because the thread of {THREAD_METADATA} has messages.")
        self._tools.register("", tools, "")
        self._start = begun
        self._thread_id = thread_id
        await self._call.send(self._wire.session_started(self._thread_id, model, self._options.permissions))
        if continued:
            await self._ask_open_calls()
        if begun.history:
            summary = struct_of({"messages": len(begun.history)})
            await self._call.send(self._wire.encode(pb.ResumeSummaryPayload(summary=summary)))

    async def _ask_open_calls(self) -> None:
        """Tell the client what waits on the thread, of its own tools and of all approvals."""
        calls = await following.open_calls(self._service, self._call.caller, self._thread_id)
        pending = PendingCalls({})
        for call in calls.values():
            if isinstance(call, ApprovalRequest) or call.name in self._tools.current:
                pending.reopen(call)
        await self._call.send(self._translator("", self._tools.current).ask(pending))

    def _check_start(self, start: pb.StartSession) -> None:
        if self._start is not None:
            raise validation_error("start: the session has begun already.")
        if start.model and start.model != self._options.model and start.model not in self._options.model_names:
            allowed = ", ".join((self._options.model, *self._options.model_names))
            raise validation_error(f"model: '{start.model[:64]}' is not allowed here; allowed are {allowed}.")

    async def _take_message(self, message: pb.UserMessage, size: int) -> None:
        message_id = message.message_id or self._service.new_id()
        try:
            await self._queue_message(message, size, message_id)
        except AppError as error:
            self._refused.append(message_id)
            await self._call.send(self._wire.message_refused(message_id, error))
            if self._turn is None and not self._waiting:
                await self._complete_refused()

    async def _queue_message(self, message: pb.UserMessage, size: int, message_id: str) -> None:
        """``AGUI_ON_BUSY`` decides about a message during a turn."""
        is_full = self._options.on_busy == "reject" or len(self._waiting) >= MAX_WAITING
        if is_full and (self._turn is not None or self._waiting):
            raise AppError(ErrorCode.THREAD_BUSY, BUSY)
        message.ai_mode = self._agent_mode(message.ai_mode)
        queued = await offload_if_large(size, read_message, message, size, message_id, self._service.new_id())
        turn = self._turn
        if self._options.on_busy == "interrupt" and turn is not None and isinstance(turn.cause, QueuedMessage):
            await turn.loop.cancel()
        self._wait_for_turn(queued)

    def _wait_for_turn(self, cause: QueuedMessage | OpenCallAnswer) -> None:
        self._waiting.append(cause)
        self._changed.set()

    async def _store_feedback(self, feedback: pb.MessageFeedback) -> None:
        rating = feedback.rating.strip().lower()
        if rating not in POSITIVE | NEGATIVE:
            raise validation_error("rating: must be positive or negative.")
        check_id("message_id", feedback.message_id)
        if feedback.session_id not in ("", self._thread_id):
            raise AppError(ErrorCode.THREAD_NOT_FOUND, "session_id: this is another session.")
        command = ThreadsFeedback(
            thread_id=self._thread_id,
            message_id=self._answers.get(feedback.message_id, feedback.message_id),
            sentiment=FeedbackSentiment.POSITIVE if rating in POSITIVE else FeedbackSentiment.NEGATIVE,
        )
        await self._service.threads.answer(self._call.caller, command)  # roz has no response to feedback
