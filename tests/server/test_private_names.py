"""The private names of uvicorn and websockets that ``server/uvicorn_protocols.py`` uses. A release may change them."""

import ast
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets import websockets_sansio_impl
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from agui_container.server.protocol_classes import KNOWN, minor_of
from tests.server.doubles import HEAD, RecordingApp, RecordingTransport, connect_http, connect_socket, until

ROOT = Path(__file__).parents[2]
ONLY_FILE = ROOT / "app/agui_container/server/uvicorn_protocols.py"
PRIVATE_MODULES = ("uvicorn._types", "uvicorn.protocols", "websockets.protocol", "websockets.server")
HTTP_METHODS = (
    *("connection_made", "connection_lost", "data_received", "handle_websocket_upgrade", "send_400_response"),
    *("on_message_begin", "on_header", "on_headers_complete", "on_body", "on_message_complete", "on_response_complete"),
    *("_start_asgi_task", "_unset_keepalive_if_required", "timeout_keep_alive_handler", "eof_received"),
)
HTTP_STATE = (
    *("transport", "flow", "scope", "headers", "cycle", "pipeline", "parser", "loop", "url", "app"),
    *("timeout_keep_alive", "timeout_keep_alive_task"),
)
CYCLE_STATE = (
    *("chunked_encoding", "response_complete", "disconnected", "message_event", "scope"),
    *("more_body", "keep_alive", "body"),
)
SOCKET_METHODS = (
    *("data_received", "shutdown", "handle_cont", "handle_ping", "handle_pong", "handle_parser_exception"),
    *("send_receive_event_to_app", "send_keepalive_ping", "connection_lost", "send", "receive"),
)
SOCKET_STATE = (
    *("transport", "loop", "conn", "frames", "writable", "read_paused", "close_sent", "handshake_initiated"),
    *("queue", "scope"),
)


async def test_the_private_names_exist() -> None:
    app = RecordingApp()
    http, socket = connect_http(app, RecordingTransport()), await connect_socket(RecordingTransport())
    http.data_received(HEAD + b"\r\n")
    await until(lambda: bool(app.scopes))
    assert [name for name in HTTP_METHODS if name not in vars(HttpToolsProtocol)] == []
    assert [name for name in HTTP_STATE if name not in vars(http)] == []
    assert [name for name in CYCLE_STATE if name not in vars(http.cycle)] == []
    assert {"write_paused", "read_paused"} <= vars(http.flow).keys()
    assert [name for name in SOCKET_METHODS if name not in vars(WebSocketsSansIOProtocol)] == []
    assert [name for name in SOCKET_STATE if name not in vars(socket)] == []
    assert [name for name in ("fail", "data_to_send", "handshake_exc") if not hasattr(socket.conn, name)] == []
    assert isinstance(socket.conn, ServerProtocol)
    assert socket.conn.reader.buffer == b""
    http.connection_lost(None)


def test_nothing_in_uvicorns_modules_is_replaced() -> None:
    assert httptools_impl.RequestResponseCycle is RequestResponseCycle
    replaced = {
        name
        for module in (uvicorn, httptools_impl, websockets_sansio_impl)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith("app.")
    }
    assert replaced == set()


def test_one_file_uses_private_modules() -> None:
    files = {
        file
        for file in (ROOT / "app").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRIVATE_MODULES)
    }
    assert files == {ONLY_FILE}


@pytest.mark.parametrize("package", KNOWN)
def test_the_tests_run_with_the_release_whose_names_are_known(package: str) -> None:
    assert minor_of(version(package)) == KNOWN[package]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"{package}>={KNOWN[package]}" in project["dependencies"]
