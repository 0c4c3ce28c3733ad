"""Every error code on every transport, from the one table of the code."""

from agui_container.protocol.errors import ERRORS
from website.guide_tables import guide_table
from website.tables import code, page, table

OPENING = (
    "Made from the table of the code. The column HTTP has 200 for errors that occur only in a stream that has begun;\n"
    "every other code may occur there, too. [Errors](../http-api.md#errors) says how a refusal looks,\n"
    "[Troubleshooting](../troubleshooting.md) what to do about it."
)


def errors() -> str:
    """Return the page."""
    meanings = {code_cell.strip("`"): row[-1] for code_cell, *row in guide_table("http-api", "code")}
    rows = [
        [
            code(name.value),
            str(spec.http),
            str(spec.ws_close),
            code(spec.grpc),
            "yes" if spec.is_retryable else "no",
            meanings[name.value],
        ]
        for name, spec in ERRORS.items()
    ]
    return page("Errors", OPENING, table(["code", "HTTP", "WebSocket close", "gRPC", "retryable", "when"], rows))
