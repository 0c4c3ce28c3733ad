"""Tests of app/agui_container/transports."""
