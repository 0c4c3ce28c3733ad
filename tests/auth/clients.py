"""A request for a run over each transport, and the reply: served, or refused with a code."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count

from websockets.exceptions import InvalidStatus

from tests.engine.doubles import Json, ask
from tests.secret_search import search
from tests.server.sockets.client import is_last
from tests.sse import events_of, http_client
from tests.websocket import receive_until, send, socket_to

NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The end of a request. ``code`` is empty for a run that has succeeded."""

    code: str
    status: int
    challenge: str | None = None
    message: str = ""

    def __post_init__(self) -> None:
        search(f"{self.message} {self.challenge}", "an error")


Ask = Callable[[str, Mapping[str, str]], Awaitable[RequestResult]]


def question() -> Json:
    number = next(NUMBERS)
    return ask(thread=f"thread-{number}", run=f"run-{number}", text="stream 1")


async def over_sse(url: str, headers: Mapping[str, str]) -> RequestResult:
    async with http_client(url) as http:
        response = await http.post("/invocations", json=question(), headers=headers)
    last = events_of(response.content)[-1]
    code, message = last.get("code", ""), last.get("message", "")
    return RequestResult(code, response.status_code, response.headers.get("www-authenticate"), message)


async def over_ws(url: str, headers: Mapping[str, str]) -> RequestResult:
    try:
        async with socket_to(url, additional_headers=headers) as socket:
            await send(socket, question())
            last = (await receive_until(socket, is_last))[-1]
            return RequestResult(last.get("code", ""), 200)
    except InvalidStatus as refusal:
        response = refusal.response
        [error] = events_of(bytes(response.body))
        challenge = response.headers.get("www-authenticate")
        return RequestResult(error["code"], response.status_code, challenge, error["message"])


ASK: Mapping[str, Ask] = {"sse": over_sse, "ws": over_ws}
