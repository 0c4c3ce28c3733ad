"""Rules for claims, as AgentCore's customJWTAuthorizer has them."""

import json
from typing import Any

import pytest

from agui_container.auth.claim_rules import TokenRules, parse_claim_rules
from agui_container.protocol.errors import AppError, ErrorCode
from tests.engine.doubles import START

ISSUER = "https://issuer.example"


def claims(**fields: object) -> dict[str, object]:
    return {"iss": ISSUER, "sub": "alice", "exp": START + 60, **fields}


def code(rules: TokenRules, **fields: object) -> ErrorCode | None:
    """The code by which a token is refused, or None."""
    try:
        rules.principal(claims(**fields), ISSUER, START)
    except AppError as error:
        return error.code
    return None


def rule(operator: str, value_type: str = "STRING_ARRAY", name: str = "groups", **value: object) -> dict[str, object]:
    match = {"claimMatchValue": value, "claimMatchOperator": operator}
    return {
        "inboundTokenClaimName": name,
        "inboundTokenClaimValueType": value_type,
        "authorizingClaimMatchValue": match,
    }


def test_a_principal_is_the_issuer_and_the_subject() -> None:
    principal = TokenRules().principal(claims(email="a@example"), ISSUER, START)
    assert (principal.issuer, principal.subject, principal.expires_at) == (ISSUER, "alice", START + 120)
    assert principal.claims["email"] == "a@example"
    assert "a@example" not in repr(principal)


@pytest.mark.parametrize(
    ("custom", "value", "is_met"),
    [
        (rule("EQUALS", "STRING", matchValueString="staff"), "staff", True),
        (rule("EQUALS", "STRING", matchValueString="staff"), "Staff", False),
        (rule("EQUALS", "STRING", matchValueString="staff"), ["staff"], False),
        (rule("CONTAINS", matchValueString="staff"), ["guest", "staff"], True),
        (rule("CONTAINS", matchValueString="staff"), ["guest"], False),
        (rule("CONTAINS", matchValueString="staff"), "staff", False),
        (rule("CONTAINS_ANY", matchValueStringList=["staff", "admin"]), ["admin"], True),
        (rule("CONTAINS_ANY", matchValueStringList=["staff", "admin"]), ["guest", {}], False),
        (rule("CONTAINS_ANY", matchValueStringList=["staff", "admin"]), None, False),
    ],
)
def test_a_custom_claim_is_compared_by_its_operator(custom: dict[str, object], value: object, *, is_met: bool) -> None:
    rules = TokenRules(claims=parse_claim_rules(json.dumps([custom])))
    assert code(rules, groups=value) is (None if is_met else ErrorCode.ACCESS_DENIED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "Invalid JSON"),
        ("{}", "Input should be a valid array"),
        ([{}], "0.inboundTokenClaimName: Field required"),
        ([rule("MATCHES")], "0.authorizingClaimMatchValue.claimMatchOperator: Input should be"),
        ([rule("EQUALS", matchValueString="a")], "0: Value error, EQUALS is for claims of the type STRING"),
        ([rule("CONTAINS", "STRING", matchValueString="a")], "0: Value error, CONTAINS is for claims of the type STR"),
        ([rule("CONTAINS_ANY", matchValueString="a")], "0: Value error, CONTAINS_ANY takes matchValueStringList alone"),
        ([rule("CONTAINS", matchValueStringList=["a"])], "0: Value error, CONTAINS takes matchValueString alone"),
        ([{**rule("CONTAINS", matchValueString="a"), "more": 1}], "0.more: Extra inputs are not permitted"),
    ],
)
def test_rules_that_cannot_be_read_name_the_field(text: Any, message: str) -> None:  # noqa: ANN401 - text or JSON
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_claim_rules(text if isinstance(text, str) else json.dumps(text))
