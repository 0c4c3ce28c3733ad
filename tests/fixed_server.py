"""A server in a thread of its own that gives every request the answer that a test has chosen."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


@dataclass
class FixedServer:
    status: int = 200
    content_type: str = "application/json"
    body: str = "{}"
    port: int = field(default=0, init=False)
    paths: list[str] = field(default_factory=list)


@pytest.fixture
def fixed_server() -> Iterator[FixedServer]:
    answer = FixedServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer.paths.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response_only(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body.encode())))
            self.end_headers()
            self.wfile.write(answer.body.encode())

        do_GET = do_POST  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        answer.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield answer
        server.shutdown()
        thread.join()
