"""Requirements of the command line and of the first steps; a part of the manifest."""

_FILE = "docs/configuration.md#aguitoml"

START = {
    "settings.file": (_FILE, "Settings stand in agui.toml; the environment wins, and a mistake stops the start."),
    "settings.shown": (_FILE, "Operators see what holds and where it comes from, without secrets."),
    "settings.schema": (_FILE, "A JSON Schema of agui.toml marks the mistakes that would stop the start."),
}
