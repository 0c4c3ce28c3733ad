"""ASGI applications that references name."""

from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

from tests.agents.upstream.servers import Server, frame, playing, refusal, run_event, said

app = Server(playing(), *(refusal(f"/refused/{status}", status, "secret detail") for status in (422, 503))).app
empty = Starlette()
NUMBER = 1

hello = Server(playing(*said("hello")))
mounted = Starlette(routes=[Mount("/agents", hello.app)])

inner = APIRouter(prefix="/inner")


@inner.post("/agent")
async def answer(document: dict[str, object]) -> Response:
    events = [run_event("RUN_STARTED", document), *said("hello"), run_event("RUN_FINISHED", document)]
    return Response("".join(map(frame, events)), media_type="text/event-stream")


outer = APIRouter(prefix="/v1")
outer.include_router(inner)
routed = FastAPI()
routed.include_router(outer)
