"""The folder of the gRPC clients that npm installs: ``@grpc/grpc-js``, and ``buf`` with Go's stack."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).with_name("clients")
BUF = FOLDER / "node_modules" / ".bin" / "buf"


def missing() -> str | None:
    """Why the clients cannot run on this machine, or None."""
    if shutil.which("node") is None:
        return "Node.js is not installed: gRPC clients in JavaScript and Go were not tried."
    if not (FOLDER / "node_modules").is_dir():
        return f"{FOLDER}/node_modules is missing (make js installs it): clients in JavaScript and Go were not tried."
    return None
