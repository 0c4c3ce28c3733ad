"""Settings of authentication, and the errors at the start for invalid ones."""

import logging

import pytest

from agui_container.log_values import format_fields
from agui_container.main import build_app
from agui_container.server.run import warn_if_shared
from agui_container.settings import Auth, Scope, Settings, SettingsError
from tests.auth.issuer import AUDIENCE

URL = "https://issuer.example/.well-known/openid-configuration"
JWT = {"auth": Auth.JWT, "auth_discovery_url": URL}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"auth": "jwt"}, "AGUI_AUTH_DISCOVERY_URL must be a URL such as"),
        ({**JWT, "auth_discovery_url": "https://issuer.example"}, "AGUI_AUTH_DISCOVERY_URL must be a URL such as"),
        (JWT, "AGUI_AUTH=jwt needs one of AGUI_AUTH_ALLOWED_AUDIENCE, AGUI_AUTH_ALLOWED_CLIENTS, "),
        ({**JWT, "auth_custom_claims": "{"}, "AGUI_AUTH_CUSTOM_CLAIMS: Invalid JSON"),
        ({"auth_discovery_url": URL}, "AGUI_AUTH_DISCOVERY_URL needs AGUI_AUTH=jwt, but AGUI_AUTH is none."),
        ({"auth_allowed_scopes": "a"}, "AGUI_AUTH_ALLOWED_SCOPES needs AGUI_AUTH=jwt, but AGUI_AUTH is none."),
    ],
)
def test_settings_that_do_not_belong_together_stop_the_start(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{message}"):
        build_app(Settings.model_validate(settings))


def test_limits_of_callers_that_have_no_identity_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    build_app(Settings(principal_tokens=1, caller_limits='{"runs": 1}'))
    for name in ("AGUI_PRINCIPAL_TOKENS", "AGUI_CALLER_LIMITS"):
        assert f"{name} has no effect" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "agent.example", ""])  # noqa: S104 - not bound
def test_a_server_that_everybody_shares_says_so_once(host: str, caplog: pytest.LogCaptureFixture) -> None:
    warn_if_shared(Settings(host=host, scope=Scope.NONE))
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    phrase = "server is open: every caller can read and change every thread"
    assert record.getMessage().startswith(f"{phrase} {format_fields({'host': host})} ")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(host="127.0.0.1", scope=Scope.NONE),
        Settings(host="::1", scope=Scope.NONE),
        Settings(host="localhost", scope=Scope.NONE),
        Settings(scope=Scope.NONE, auth=Auth.JWT, auth_discovery_url=URL, auth_allowed_audience=(AUDIENCE,)),
    ],
)
def test_a_server_that_callers_do_not_share_says_nothing(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    warn_if_shared(settings)
    assert caplog.records == []
