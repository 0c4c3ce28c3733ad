"""Runs in the Python that ``LLAMA_PYTHON`` names, not in ours: llama.cpp's server with a model made on the spot.

The model has one layer of random weights and a vocabulary of single bytes: 115 kB, and it says nothing that makes
sense, but server, template, sampler and grammar are the real ones.

    python -m venv /tmp/llama && /tmp/llama/bin/pip install gguf 'llama-cpp-python[server]'   # compiles for minutes
    LLAMA_PYTHON=/tmp/llama/bin/python make test ARGS="-k llama"
"""
# mypy: ignore-errors
# ruff: noqa: PLC0415

import os
import sys
from pathlib import Path

WIDTH, HEADS, HIDDEN = 32, 2, 64


def write_model(path: Path) -> None:
    """Write a model of the llama architecture as GGUF."""
    import gguf
    import numpy as np

    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    random = np.random.default_rng(7)
    shapes = {
        "token_embd": (len(tokens), WIDTH),
        "output": (len(tokens), WIDTH),
        **{f"blk.0.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (HIDDEN, WIDTH),
        "blk.0.ffn_up": (HIDDEN, WIDTH),
        "blk.0.ffn_down": (WIDTH, HIDDEN),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.3).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(path: Path, port: str) -> None:
    """Write the model and become the server."""
    write_model(path)
    options = ["--model", str(path), "--port", port, "--n_ctx", "512", "--chat_format", "chatml-function-calling"]
    os.execv(sys.executable, [sys.executable, "-m", "llama_cpp.server", *options])  # noqa: S606


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
