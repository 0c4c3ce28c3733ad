"""The compose file, checked without a Docker engine: the app, and three replicas of it on one database and one bus."""

from typing import Any

import pytest
import yaml

from tests.packaging.test_packaging import ROOT, SETTINGS, of, stages

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
APP = SERVICES["app"]
REPLICAS = {name: each for name, each in SERVICES.items() if name.startswith("replica-")}
SHARED = {"AGUI_STORE": "postgresql://agui:agui@postgres/agui", "AGUI_BUS": "redis://valkey:6379/0"}
"""Store and bus of the replicas."""


def test_compose_runs_the_image_locked_down() -> None:
    assert APP["build"]["dockerfile"] == "Dockerfile.arm64"
    assert APP["ports"] == ["8080:8080"]
    assert APP["read_only"] is True
    assert APP["cap_drop"] == ["ALL"]
    assert "profiles" not in APP


def test_compose_builds_and_runs_for_the_platform_of_a_variable() -> None:
    assert APP["platform"] == APP["build"]["args"]["PLATFORM"] == "${PLATFORM:-linux/arm64}"


def test_compose_has_a_volume_for_a_database_file_that_the_user_of_the_image_can_write() -> None:
    assert APP["volumes"] == ["data:/data"]
    assert "data" in COMPOSE["volumes"]
    final = stages()[-1]
    assert "--from=build --chown=1000:1000 /data /data" in of(final, "COPY")
    assert of(final, "USER") == ["1000"]


def test_compose_passes_only_settings_that_exist() -> None:
    environment = APP["environment"]
    assert environment["AGUI_MODEL"] == "${AGUI_MODEL:-offline}"
    assert {name for name in environment if not name.startswith("AWS_")} <= SETTINGS


def test_compose_passes_every_setting_but_where_to_listen() -> None:
    assert SETTINGS - APP["environment"].keys() == {"AGUI_HOST", "AGUI_PORT"}


def test_compose_has_a_model_server_beside_the_app_for_those_who_ask() -> None:
    server = SERVICES["model"]
    assert server["profiles"] == ["model"]
    assert server["healthcheck"]
    assert "ports" not in server


# --- replicas ---------------------------------------------------------------------------------------------------------


def test_compose_has_three_replicas_for_those_who_ask_each_on_a_port_of_its_own() -> None:
    assert [each["ports"] for each in REPLICAS.values()] == [["8081:8080"], ["8082:8080"], ["8083:8080"]]
    assert [each["profiles"] for each in REPLICAS.values()] == [["replicas"]] * 3


@pytest.mark.parametrize("name", REPLICAS)
def test_a_replica_is_the_app_with_all_its_settings_on_what_all_replicas_share(name: str) -> None:
    replica = REPLICAS[name]
    assert replica["environment"] == APP["environment"] | SHARED
    own = {"ports", "profiles", "environment", "depends_on"}
    assert {key: value for key, value in replica.items() if key not in own} == {
        key: value for key, value in APP.items() if key not in own
    }


@pytest.mark.parametrize("name", REPLICAS)
def test_a_replica_waits_until_the_database_and_the_bus_answer(name: str) -> None:
    waits = REPLICAS[name]["depends_on"]
    assert waits == {other: {"condition": "service_healthy"} for other in ("postgres", "valkey")}
    assert all(SERVICES[other]["healthcheck"]["test"] for other in waits)
    assert "127.0.0.1" in SERVICES["postgres"]["healthcheck"]["test"]  # by address it answers once it is made


def test_data_of_replicas_outlives_the_container_of_the_database() -> None:
    postgres = SERVICES["postgres"]
    volume, _, folder = postgres["volumes"][0].partition(":")
    assert volume in COMPOSE["volumes"]
    assert (postgres["image"], folder) == ("postgres:18", "/var/lib/postgresql")
    login = {"POSTGRES_USER": "agui", "POSTGRES_PASSWORD": "agui", "POSTGRES_DB": "agui"}
    assert postgres["environment"] == login


def test_only_replicas_can_connect_to_the_database_and_the_bus() -> None:
    for name in ("postgres", "valkey"):
        assert SERVICES[name]["profiles"] == ["replicas"]
        assert "ports" not in SERVICES[name]
