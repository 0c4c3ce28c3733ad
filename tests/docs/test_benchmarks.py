"""The guide of the benchmarks has every scenario, and the goals of gRPC are those of the code."""

from bench.__main__ import SCENARIOS
from bench.scenarios.grpc_streams import GOAL
from tests.docs.documents import GUIDES
from tests.docs.markdown import code


def test_the_table_of_scenarios_has_every_scenario() -> None:
    assert [code(name) for name, _ in GUIDES["benchmarks"].table("scenario")] == list(SCENARIOS)


def test_the_guide_of_grpc_names_the_goal_and_the_scenario() -> None:
    assert f"a ratio of {GOAL:g}" in GUIDES["grpc"].prose
    assert "grpc" in SCENARIOS
