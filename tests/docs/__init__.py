"""Tests that documents match the tree and that their examples run."""
