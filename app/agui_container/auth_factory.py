"""Construction of the authentication of callers from the settings.

Rule: the verification of tokens is imported only if ``AGUI_AUTH`` requires tokens.
"""

import logging

from agui_container.log_values import format_fields
from agui_container.ports import Clock
from agui_container.ports.auth import Authenticator
from agui_container.settings import Auth, Settings, SettingsError, check_auth, check_extra
from agui_container.web.authentication import NO_AUTHENTICATION, CallerAuthentication, ProtectedResource
from agui_container.web.console.assets import SignIn, SignInEndpoints

logger = logging.getLogger(__name__)


def build_authentication(settings: Settings, clock: Clock) -> CallerAuthentication:
    check_auth(settings)
    if settings.auth is Auth.NONE:
        return NO_AUTHENTICATION
    authenticator = build_authenticator(settings, clock)
    issuer = settings.auth_discovery_url.partition("/.well-known/")[0]
    resource = ProtectedResource(settings.auth_resource.rstrip("/"), issuer, settings.auth_allowed_scopes)
    return CallerAuthentication(authenticator, resource)


def build_authenticator(settings: Settings, clock: Clock) -> Authenticator:
    check_extra("AGUI_AUTH=jwt", "jwt")
    from agui_container.auth.claim_rules import TokenRules, parse_claim_rules  # noqa: PLC0415 - only if it is on
    from agui_container.auth.tokens import JwtAuthenticator  # noqa: PLC0415

    try:
        claims = parse_claim_rules(settings.auth_custom_claims)
    except ValueError as error:
        raise SettingsError(f"AGUI_AUTH_CUSTOM_CLAIMS: {error}.") from None
    rules = TokenRules(
        settings.auth_allowed_audience, settings.auth_allowed_clients, settings.auth_allowed_scopes, claims
    )
    return JwtAuthenticator(settings.auth_discovery_url, rules, clock)


def build_sign_in(settings: Settings) -> SignIn | None:
    """Return None without ``AGUI_CONSOLE_CLIENT_ID``. Raises ``SettingsError`` if the server asks for no tokens."""
    if not settings.console_client_id:
        return None
    if settings.auth is Auth.NONE:
        raise SettingsError("AGUI_CONSOLE_CLIENT_ID needs AGUI_AUTH=jwt, but AGUI_AUTH is none.")
    from agui_container.auth.tokens import IssuerFailure, fetch_endpoints  # noqa: PLC0415 - only if it is on

    async def find_endpoints() -> SignInEndpoints | None:
        try:
            return SignInEndpoints(*await fetch_endpoints(settings.auth_discovery_url))
        except IssuerFailure as error:
            logger.warning("sign-in of the chat page unavailable %s", format_fields({"error": error}))
            return None

    scope = " ".join(dict.fromkeys(("openid", *settings.auth_allowed_scopes)))
    return SignIn(settings.console_client_id, scope, find_endpoints)
