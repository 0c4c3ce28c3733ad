"""Behaviour that clients rely on. Each test is written once and runs over every transport."""
