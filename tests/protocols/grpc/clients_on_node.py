"""The folder of the gRPC clients that npm installs: ``@grpc/grpc-js``, and ``buf`` with Go's stack."""

from pathlib import Path

FOLDER = Path(__file__).with_name("clients")
BUF = FOLDER / "node_modules" / ".bin" / "buf"
