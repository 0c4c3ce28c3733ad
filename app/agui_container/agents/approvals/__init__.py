"""Approval of tool calls by people."""
