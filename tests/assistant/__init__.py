"""Tests of app/agui_container/assistant."""
