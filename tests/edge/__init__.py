"""Tests of app/edge."""
