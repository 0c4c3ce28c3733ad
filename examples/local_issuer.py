"""A token issuer on this machine, to try AGUI_AUTH=jwt without an account.

    make issuer

It serves its discovery document, its keys, and at /token a token for whoever asks. It signs users in as alice, without
a question, by authorization code with PKCE, for the chat page and any other client. So it is for tests only, and
listens on loopback. Its key lives as long as the process.
"""

import argparse
import socket
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode
from uuid import uuid4

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt.algorithms import ECAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

LIFETIME = 3600


class LocalIssuer:
    """An issuer with one signing key at a time.

    Attributes:
        url: name of the issuer, and where it is served.
        now: returns Unix seconds.
    """

    def __init__(self, url: str = "http://localhost:9000") -> None:
        self.url = url
        self.now = time.time
        self._keys: dict[str, EllipticCurvePrivateKey] = {}
        self._codes: dict[str, Mapping[str, str]] = {}
        self.rotate()

    @property
    def discovery_url(self) -> str:
        """The value of AGUI_AUTH_DISCOVERY_URL."""
        return f"{self.url}/.well-known/openid-configuration"

    def rotate(self) -> None:
        """Make a new key. The old one is published no longer."""
        self._keys = {str(uuid4()): generate_private_key(SECP256R1())}

    def token(self, subject: str, /, **claims: object) -> str:
        """Return a signed token. A claim that is None is left out."""
        [(key_id, key)] = self._keys.items()
        now = int(self.now())
        common = {"iss": self.url, "sub": subject, "iat": now, "exp": now + LIFETIME}
        payload = {name: value for name, value in (common | claims).items() if value is not None}
        return jwt.encode(payload, key, algorithm="ES256", headers={"kid": key_id})

    def discovery_document(self) -> Mapping[str, object]:
        """Return the document from which servers learn where the keys are."""
        paths = {"jwks_uri": "keys", "authorization_endpoint": "authorize", "token_endpoint": "token"}
        return {"issuer": self.url, **{name: f"{self.url}/{path}" for name, path in paths.items()}}

    def key_set(self) -> Mapping[str, object]:
        """Return the public keys."""
        keys = ((key_id, ECAlgorithm.to_jwk(key.public_key(), as_dict=True)) for key_id, key in self._keys.items())
        return {"keys": [{**key, "kid": key_id, "use": "sig", "alg": "ES256"} for key_id, key in keys]}

    def authorize(self, query: Mapping[str, str]) -> str:
        """Sign alice in. Return the address to which her browser goes, with a code that is good once."""
        code = str(uuid4())
        self._codes[code] = {name: query[name] for name in ("client_id", "redirect_uri", "code_challenge")}
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def redeem(self, form: Mapping[str, str]) -> Mapping[str, object] | None:
        """Return the answer to a code, or None if it is wrong, used or another client's."""
        asked = self._codes.pop(form.get("code", ""), None)
        digest = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        same = ("client_id", "redirect_uri")
        if asked is None or asked["code_challenge"] != challenge or any(asked[name] != form.get(name) for name in same):
            return None
        token = self.token("alice", aud="my-agent", client_id=asked["client_id"])
        return {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME}

    def app(self) -> Starlette:
        """Return the application that serves the issuer."""

        async def discovery(_: Request) -> Response:
            return JSONResponse(self.discovery_document())

        async def keys(_: Request) -> Response:
            return JSONResponse(self.key_set())

        async def authorize(request: Request) -> Response:
            return RedirectResponse(self.authorize(request.query_params), 303)

        async def token(request: Request) -> Response:
            form = dict(parse_qsl((await request.body()).decode()))
            if form.get("grant_type") == "authorization_code":
                answer = self.redeem(form)
                content = {"error": "invalid_grant"} if answer is None else answer
                return JSONResponse(content, 400 if answer is None else 200, {"Access-Control-Allow-Origin": "*"})
            claims = {"sub": "alice", "aud": "my-agent", **request.query_params}
            return PlainTextResponse(self.token(claims.pop("sub"), **claims))

        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", discovery),
                Route("/keys", keys),
                Route("/authorize", authorize),
                Route("/token", token, methods=["GET", "POST"]),
            ]
        )


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Serve a token issuer on loopback.")
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one")
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port))
    issuer = LocalIssuer(f"http://localhost:{listener.getsockname()[1]}")
    print(f"AGUI_AUTH_DISCOVERY_URL={issuer.discovery_url}", flush=True)
    uvicorn.Server(uvicorn.Config(issuer.app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
