"""Releases of uvicorn, websockets and grpclib that this server does not know: it starts, and says what is missing."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from agui_container.main import create_app
from agui_container.server import protocol_classes
from agui_container.server.protocol_classes import PLAIN, choose_protocols, without_plain_grpc
from agui_container.server.run import uvicorn_config
from agui_container.settings import Settings, SettingsError
from agui_container.transports.grpc import options
from tests.behaviour.server import serving
from tests.engine.doubles import agent_of, ask
from tests.requirements import requirement
from tests.sse import events_of, http_client
from tests.websocket import receive_until, socket_to

INSTALLED = {"uvicorn": "0.54.2", "websockets": "17.4"}


@pytest.fixture(autouse=True)
def _choose_anew() -> Iterator[None]:
    choose_protocols.cache_clear()
    yield
    choose_protocols.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Let these versions be installed."""
    monkeypatch.setattr(protocol_classes, "version", (INSTALLED | versions).__getitem__)


@requirement("start.newer")
def test_known_releases_get_our_protocol_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert choose_protocols().hands_over
    assert without_plain_grpc(Settings()).grpc


@requirement("start.newer")
@pytest.mark.parametrize("newer", [{"uvicorn": "0.55.0"}, {"uvicorn": "1.0"}, {"websockets": "18.0.1"}])
def test_other_releases_get_uvicorns_own_with_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, newer: dict[str, str]
) -> None:
    install(monkeypatch, **newer)
    assert choose_protocols() is PLAIN
    assert not without_plain_grpc(Settings()).grpc
    [(package, version)] = newer.items()
    assert caplog.messages == [
        f"plain protocol classes unknown='{package} {version}' without='gRPC, limits of connections'"
    ]


@requirement("start.newer")
async def test_plain_classes_serve_runs_over_http_and_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, uvicorn="0.55.0")
    settings = without_plain_grpc(Settings(host="127.0.0.1"))
    app = create_app(agent_of("a"), settings)  # a socket may join deltas
    async with serving(app, uvicorn_config(app, settings, 1_000)) as url, http_client(url) as client:
        events = events_of((await client.post("/invocations", json=ask())).content)
        assert "grpc" not in (await client.get("/capabilities")).json()["custom"]
        async with socket_to(url) as socket:
            await socket.send(json.dumps(ask("t2", "r2")))
            received = await receive_until(socket, lambda event: event.get("type") == "RUN_FINISHED")
    assert [event["type"] for event in events] == [event["type"] for event in received]
    assert [event["type"] for event in events][-1] == "RUN_FINISHED"


# --- grpclib ----------------------------------------------------------------------------------------------------------


@requirement("start.newer")
def test_grpc_is_off_with_a_grpclib_that_is_not_known(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(options, "version", lambda _: "0.5.0")
    app = create_app(agent_of("a"), Settings())
    assert "grpc" not in (app.state.service.capabilities.custom or {})
    reason = "'grpclib 0.5.0 is not known, this server uses private names of 0.4'"
    assert caplog.messages == [f"gRPC is off reason={reason}"]
    assert caplog.records[0].levelno == logging.WARNING


@requirement("start.extras")
def test_grpc_is_off_where_its_extra_is_not_installed_unless_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "grpclib", None)
    assert "grpc" not in (create_app(agent_of("a"), Settings()).state.service.capabilities.custom or {})
    assert "the package grpclib is missing" in caplog.messages[0]
    with pytest.raises(SettingsError, match=r"AGUI_GRPC needs the package grpclib\. .*agui-container\[grpc\]"):
        create_app(agent_of("a"), Settings(grpc=True))
