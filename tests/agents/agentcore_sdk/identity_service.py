"""A local double of AgentCore Identity's data plane: tokens, API keys, and consent that is given later; and of STS."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

WEB_IDENTITY = b"""<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetWebIdentityTokenResult><WebIdentityToken>token of STS</WebIdentityToken></GetWebIdentityTokenResult>
</GetWebIdentityTokenResponse>"""
AUTHORIZE = "https://login.example/authorize?request=1"


class IdentityService:
    """Attributes: the requests so far, and True once the person has consented."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[Json] = []
        self.has_consent = False

    def answer(self, path: str, request: Json) -> Json:
        """Answer as the service does. The double of a token names whom it is for."""
        self.requests.append(request)
        whose = f"{request['resourceCredentialProviderName']} for {request['workloadIdentityToken']}"
        if path == "/identities/api-key":
            return {"apiKey": f"key of {whose}"}
        if request["oauth2Flow"] == "USER_FEDERATION" and not self.has_consent:
            return {"authorizationUrl": AUTHORIZE, "sessionUri": "urn:ietf:params:oauth:request_uri:1"}
        return {"accessToken": f"token of {whose}"}


@contextmanager
def identity_service() -> Iterator[IdentityService]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            is_sts = b"Action=GetWebIdentityToken" in sent
            body = WEB_IDENTITY if is_sts else json.dumps(service.answer(self.path, json.loads(sent))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml" if is_sts else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = IdentityService(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
