"""Tests of app/agui_container/conversation."""
