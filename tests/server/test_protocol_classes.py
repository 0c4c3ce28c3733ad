"""Releases of uvicorn and grpclib that this server does not know: it starts, and says what is missing."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from agui_container.main import create_app
from agui_container.protocols.grpc import options
from agui_container.server import protocol_classes
from agui_container.server.protocol_classes import choose_protocols, is_known, without_plain_grpc
from agui_container.server.run import uvicorn_config
from agui_container.settings import Settings, SettingsError
from tests.behaviour.server import serving
from tests.engine.doubles import agent_of, ask
from tests.sse import events_of, http_client
from tests.websocket import receive_until, socket_to


@pytest.fixture(autouse=True)
def _choose_anew() -> Iterator[None]:
    is_known.cache_clear()
    yield
    is_known.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(protocol_classes, "version", lambda _: version)


@pytest.mark.parametrize("newer", ["0.55.0", "1.0"])
def test_other_releases_get_uvicorns_own_with_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, newer: str
) -> None:
    install(monkeypatch, newer)
    assert choose_protocols() == {"http": "auto", "ws": "websockets-sansio"}
    assert not without_plain_grpc(Settings()).grpc
    assert caplog.messages == [f"plain protocol classes unknown='uvicorn {newer}' without=gRPC"]


async def test_plain_classes_serve_runs_over_http_and_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "0.55.0")
    settings = without_plain_grpc(Settings(host="127.0.0.1"))
    app = create_app(agent_of("a"), settings)  # a socket may join deltas
    async with serving(app, uvicorn_config(app, settings)) as url, http_client(url) as client:
        events = events_of((await client.post("/invocations", json=ask())).content)
        assert "grpc" not in (await client.get("/capabilities")).json()["custom"]
        async with socket_to(url) as socket:
            await socket.send(json.dumps(ask("t2", "r2")))
            received = await receive_until(socket, lambda event: event.get("type") == "RUN_FINISHED")
    assert [event["type"] for event in events] == [event["type"] for event in received]
    assert [event["type"] for event in events][-1] == "RUN_FINISHED"


def test_the_release_that_is_tested_is_known() -> None:
    assert choose_protocols()["http"] != "auto"
    assert without_plain_grpc(Settings()).grpc


def test_grpc_is_off_with_a_grpclib_that_is_not_known(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(options, "version", lambda _: "0.5.0")
    app = create_app(agent_of("a"), Settings())
    assert "grpc" not in (app.state.service.capabilities.custom or {})
    reason = "'grpclib 0.5.0 is not known, this server uses private names of 0.4'"
    assert caplog.messages == [f"gRPC is off reason={reason}"]
    assert caplog.records[0].levelno == logging.WARNING


def test_grpc_is_off_where_its_extra_is_not_installed_unless_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "grpclib", None)
    assert "grpc" not in (create_app(agent_of("a"), Settings()).state.service.capabilities.custom or {})
    assert caplog.messages == []
    with pytest.raises(SettingsError, match=r"AGUI_GRPC needs the package grpclib\. .*agui-container\[grpc\]"):
        create_app(agent_of("a"), Settings(grpc=True))
