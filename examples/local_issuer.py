"""A token issuer on this machine, to try AGUI_AUTH=jwt without an account.

    make issuer

It serves its discovery document, its keys, and at /token a token for whoever asks. So it is for tests only, and
listens on loopback. Its key lives as long as the process.
"""

import argparse
import socket
import time
from collections.abc import Mapping
from uuid import uuid4

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt.algorithms import ECAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
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
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token"}

    def key_set(self) -> Mapping[str, object]:
        """Return the public keys."""
        keys = ((key_id, ECAlgorithm.to_jwk(key.public_key(), as_dict=True)) for key_id, key in self._keys.items())
        return {"keys": [{**key, "kid": key_id, "use": "sig", "alg": "ES256"} for key_id, key in keys]}

    def app(self) -> Starlette:
        """Return the application that serves the issuer."""

        async def discovery(_: Request) -> Response:
            return JSONResponse(self.discovery_document())

        async def keys(_: Request) -> Response:
            return JSONResponse(self.key_set())

        async def token(request: Request) -> Response:
            claims = {"sub": "alice", "aud": "my-agent", **request.query_params}
            return PlainTextResponse(self.token(claims.pop("sub"), **claims))

        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", discovery),
                Route("/keys", keys),
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
