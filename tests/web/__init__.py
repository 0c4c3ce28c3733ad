"""Tests of app/agui_container/web."""
