"""The least work that a server can do for an agent's events: encode the text of each delta, and write a run at once.

Nothing is checked, numbered or stored. Only the class of an event is read, and the JSON around a text is prepared. The
request is validated, because the agent needs its input. Any other server does more and is slower.
"""

from json.encoder import encode_basestring as quoted

from ag_ui.core import RunAgentInput, TextMessageContentEvent
from ag_ui.encoder import EventEncoder
from starlette.types import Receive, Scope, Send

from bench.peers.raw import HEADERS, read
from bench.script import MESSAGE, agent


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one POST with the deltas of its run."""
    if scope["type"] != "http":
        return
    events = agent(RunAgentInput.model_validate_json(await read(receive)))
    texts = [quoted(event.delta) async for event in events if type(event) is TextMessageContentEvent]
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": frames(texts), "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def frames(texts: list[str]) -> bytes:
    """A delta for each text."""
    frame = EventEncoder().encode(TextMessageContentEvent(message_id=MESSAGE, delta="0"))
    opening, ending = frame.split(quoted("0"))
    return (opening + (ending + opening).join(texts) + ending).encode()
