"""Requirements for tokens and secrets; a part of the manifest in ``requirements``."""

AUTH = {
    "auth.valid": ("docs/security.md#tokens", "A valid token of the issuer is let in."),
    "auth.missing": ("docs/security.md#tokens", "Without a token a request gets 401 and the way to the metadata."),
    "auth.invalid": ("docs/security.md#tokens", "A token that does not meet the rules is refused by the claim's name."),
    "auth.skew": ("docs/security.md#tokens", "Clocks may differ by 60 seconds."),
    "auth.forged": ("docs/security.md#tokens", "A token that the issuer has not signed is refused."),
    "auth.scope": ("docs/security.md#tokens", "Without one of the scopes a token gets 403 and no challenge."),
    "auth.claims": ("docs/security.md#tokens", "Without a custom claim a token gets 403."),
    "auth.clients": ("docs/security.md#tokens", "Audience and client must both hold."),
    "auth.status-stream": (
        "docs/security.md#behind-agentcore",
        "With AGUI_ERROR_STATUS=stream a refused invocation is a 200 with the error.",
    ),
    "auth.socket": (
        "docs/security.md#tokens",
        "A socket's token may be a subprotocol, and is checked before it opens.",
    ),
    "auth.expiry": ("docs/security.md#tokens", "A message after the token's expiry ends its connection."),
    "auth.rotation": ("docs/security.md#the-issuer", "New keys are found, and made-up ones cost one request in 30 s."),
    "auth.slow": ("docs/security.md#the-issuer", "A slow issuer is a 503 in time, and known keys go on."),
    "auth.gone": ("docs/security.md#the-issuer", "An issuer that is gone is a 503, and is asked again."),
    "auth.discovery": ("docs/security.md#the-issuer", "The discovery document names the issuer."),
    "auth.metadata": ("docs/security.md#tokens", "The metadata of the protected resource name the issuer."),
    "auth.roboto": ("docs/security.md#tokens", "Roboto's clients get the refusal in their own form."),
    "auth.open": ("docs/security.md#tokens", "Only health, metadata and the files of the page need no token."),
    "auth.principal": ("docs/security.md#tokens", "Runs and threads of a principal do not exist for another one."),
    "auth.warning": ("docs/security.md#on-the-open-internet", "A server that everybody shares says so at its start."),
    "secret.headers": ("docs/security.md#secrets", "Headers reach the agent by ctx and nothing else."),
    "secret.hidden": ("docs/security.md#secrets", "No secret is in a log, an error, a span or the store."),
}
