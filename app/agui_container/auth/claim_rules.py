"""Rules for the claims of a token, as AgentCore's ``customJWTAuthorizer`` has them.

Rule: pure. The signature has been verified before; nothing here reads a clock.

A token that is not meant for this server is UNAUTHORIZED. A valid token without a scope or a claim that is required is
ACCESS_DENIED, because another token of the same kind would not help.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from agui_container.ports.auth import Principal
from agui_container.protocol.errors import AppError, ErrorCode

SKEW_SECONDS = 60.0
"""Difference that the clocks of the issuer and of this server may have."""

MAX_SUBJECT = 255
"""Characters of a subject. Source: OpenID Connect Core 1.0, section 2."""

LATEST = 1e12
"""Unix seconds that no time of a token reaches."""

Name = Annotated[str, Field(min_length=1, max_length=255)]


class AwsModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class MatchValue(AwsModel):
    match_value_string: Name | None = None
    match_value_string_list: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None


class ClaimMatch(AwsModel):
    claim_match_value: MatchValue
    claim_match_operator: Literal["EQUALS", "CONTAINS", "CONTAINS_ANY"]


class ClaimRule(AwsModel):
    """One entry of ``customClaims``.

    ``EQUALS`` compares a string with a string. ``CONTAINS`` finds one string in an array, ``CONTAINS_ANY`` one of
    several.
    """

    inbound_token_claim_name: Name
    inbound_token_claim_value_type: Literal["STRING", "STRING_ARRAY"]
    authorizing_claim_match_value: ClaimMatch

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        match = self.authorizing_claim_match_value
        is_list = match.claim_match_operator == "CONTAINS_ANY"
        value_type = "STRING" if match.claim_match_operator == "EQUALS" else "STRING_ARRAY"
        if self.inbound_token_claim_value_type != value_type:
            raise ValueError(f"{match.claim_match_operator} is for claims of the type {value_type}")
        value = match.claim_match_value
        has_values = (value.match_value_string is not None, value.match_value_string_list is not None)
        if has_values != (not is_list, is_list):
            name = "matchValueStringList" if is_list else "matchValueString"
            raise ValueError(f"{match.claim_match_operator} takes {name} alone")
        return self

    def matches(self, claims: Mapping[str, object]) -> bool:
        claim = claims.get(self.inbound_token_claim_name)
        match = self.authorizing_claim_match_value
        value = match.claim_match_value
        if match.claim_match_operator == "EQUALS":
            return isinstance(claim, str) and claim == value.match_value_string
        allowed = value.match_value_string_list or (value.match_value_string,)
        return isinstance(claim, list) and any(each in claim for each in allowed)


CLAIM_RULES: TypeAdapter[tuple[ClaimRule, ...]] = TypeAdapter(tuple[ClaimRule, ...])


def parse_claim_rules(text: str) -> tuple[ClaimRule, ...]:
    """Parse a JSON list of rules. Raises ``ValueError``, naming the field."""
    try:
        return CLAIM_RULES.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {first['msg']}" if path else str(first["msg"])) from None


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Requirements on the claims of a token: one of each collection that is not empty, and all of ``claims``."""

    audience: Collection[str] = ()
    clients: Collection[str] = ()
    scopes: Collection[str] = ()
    claims: Collection[ClaimRule] = ()

    def principal(self, claims: Mapping[str, object], issuer: str, now: float) -> Principal:
        """Check the claims of a verified token. Raises ``AppError`` UNAUTHORIZED or ACCESS_DENIED, naming the claim."""
        if claims.get("iss") != issuer:
            raise unauthorized("The token is of another issuer.")
        expires_at = check_times(claims, now)
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT:
            raise unauthorized("The token names no subject (sub).")
        if self.audience and not strings(claims.get("aud")) & {*self.audience}:
            raise unauthorized("The token is for another audience (aud).")
        if self.clients and claims.get("client_id") not in self.clients:
            raise unauthorized("The token is of another client (client_id).")
        self._check_permissions(claims)
        return Principal(issuer, subject, expires_at, claims)

    def _check_permissions(self, claims: Mapping[str, object]) -> None:
        if self.scopes and not scopes_of(claims) & {*self.scopes}:
            raise AppError(ErrorCode.ACCESS_DENIED, "The token has none of the scopes that this server asks for.")
        for rule in self.claims:
            if not rule.matches(claims):
                name = rule.inbound_token_claim_name
                raise AppError(ErrorCode.ACCESS_DENIED, f"The token lacks a value that this server asks for: {name}.")


def check_times(claims: Mapping[str, object], now: float) -> float:
    """Check ``exp``, ``nbf`` and ``iat``, and return the time from which on the token is refused."""
    expiry = seconds(claims, "exp")
    if expiry is None:
        raise unauthorized("The token has no time of expiry (exp).")
    if now >= expiry + SKEW_SECONDS:
        raise expired()
    for name in ("nbf", "iat"):
        begin = seconds(claims, name)
        if begin is not None and now < begin - SKEW_SECONDS:
            raise unauthorized(f"The token is not valid yet ({name}).")
    return expiry + SKEW_SECONDS


def seconds(claims: Mapping[str, object], name: str) -> float | None:
    """Return a claim that is a time, or None if it is absent. Raises ``AppError`` UNAUTHORIZED for any other value."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LATEST:
        raise unauthorized(f"The token has no proper time ({name}).")
    return float(value)


def scopes_of(claims: Mapping[str, object]) -> set[str]:
    """Return the scopes of a token: ``scope``, or ``scp`` of Entra and Okta; an array, or a string with spaces."""
    found: set[str] = set()
    for claim in (claims.get("scope"), claims.get("scp")):
        found |= {*claim.split()} if isinstance(claim, str) else strings(claim)
    return found


def strings(claim: object) -> set[str]:
    if isinstance(claim, str):
        return {claim}
    return {each for each in claim if isinstance(each, str)} if isinstance(claim, list) else set()


def unauthorized(message: str) -> AppError:
    return AppError(ErrorCode.UNAUTHORIZED, message)


def expired() -> AppError:
    return unauthorized("The token has expired.")
