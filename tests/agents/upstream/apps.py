"""ASGI applications that references name."""

from starlette.applications import Starlette

from tests.agents.upstream.servers import Server, playing, refusal

app = Server(playing(), *(refusal(f"/refused/{status}", status, "secret detail") for status in (422, 503))).app
empty = Starlette()
NUMBER = 1
