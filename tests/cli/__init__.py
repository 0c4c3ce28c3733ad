"""Tests of the command line `agui`."""
