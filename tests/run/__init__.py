"""Tests of app/agui_container/run."""
