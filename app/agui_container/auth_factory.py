"""Construction of the authentication of callers from the settings.

Rule: the verification of tokens is imported only if ``AGUI_AUTH`` requires tokens.
"""

from collections.abc import Awaitable, Callable

from agui_container.ports import Clock
from agui_container.settings import Auth, Settings, SettingsError, check_auth, check_extra
from agui_container.transports.authentication import NO_AUTHENTICATION, CallerAuthentication, ProtectedResource


def build_authentication(
    settings: Settings, clock: Clock, closers: list[Callable[[], Awaitable[None]]]
) -> CallerAuthentication:
    """Return the authentication of callers. Resources to close are added to ``closers``.

    Raises:
        SettingsError: settings of the tokens are missing or invalid.
    """
    check_auth(settings)
    if settings.auth is Auth.NONE:
        return NO_AUTHENTICATION
    check_extra("AGUI_AUTH=jwt", "jwt")
    from agui_container.auth.claim_rules import TokenRules, parse_claim_rules  # noqa: PLC0415 - only if it is on
    from agui_container.auth.jwt_authenticator import JwtAuthenticator  # noqa: PLC0415

    try:
        claims = parse_claim_rules(settings.auth_custom_claims)
    except ValueError as error:
        raise SettingsError(f"AGUI_AUTH_CUSTOM_CLAIMS: {error}.") from None
    rules = TokenRules(
        settings.auth_allowed_audience, settings.auth_allowed_clients, settings.auth_allowed_scopes, claims
    )
    authenticator = JwtAuthenticator(settings.auth_discovery_url, rules, clock)
    closers.append(authenticator.aclose)
    issuer = settings.auth_discovery_url.partition("/.well-known/")[0]
    resource = ProtectedResource(settings.auth_resource.rstrip("/"), issuer, settings.auth_allowed_scopes)
    return CallerAuthentication(authenticator, resource)
