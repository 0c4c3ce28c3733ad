"""Tests of the local data plane: with this server as the container, and with small containers that break one rule."""
