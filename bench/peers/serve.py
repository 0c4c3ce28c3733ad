"""Serve one peer: ``python -m bench.peers.serve MODULE PORT``, on uvicorn with uvloop and httptools, as ours is."""

import importlib
import sys

import uvicorn


def main(module: str, port: int) -> None:
    """Until the process is ended."""
    app = importlib.import_module(module).app
    uvicorn.run(
        app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
