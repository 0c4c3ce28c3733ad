"""Tests of app/agui_container/engine."""
