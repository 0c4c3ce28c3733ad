"""Tests of app/agui_container/server."""
