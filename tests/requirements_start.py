"""Requirements of the command line and of the first steps; a part of the manifest."""

_FILE = "docs/configuration.md#aguitoml"
_START = "docs/start.md#a-project"
_DOCTOR = "docs/start.md#agui-doctor"
_DEV = "docs/start.md#agui-dev"

START = {
    "settings.file": (_FILE, "Settings stand in agui.toml; the environment wins, and a mistake stops the start."),
    "settings.shown": (_FILE, "Operators see what holds and where it comes from, without secrets."),
    "init.runs": (_START, "A new project of each framework runs at once, and its tests pass."),
    "init.files": (_START, "A new project has all that it needs, and no file of yours is overwritten."),
    "doctor.healthy": (_DOCTOR, "The defaults are healthy, and nothing is changed or made."),
    "doctor.faults": (_DOCTOR, "Each fault is found and says what to do; the exit status tells."),
    "dev.reload": (_DEV, "A change restarts the server on the same port, and threads are kept."),
    "dev.page": (_DEV, "The page is opened, and a port that is taken is named."),
    "start.extras": (
        "docs/install.md#extras",
        "A setting whose extra is missing stops the start with the command that installs it; the defaults need none.",
    ),
    "start.newer": (
        "docs/install.md#newer-packages",
        "With a newer uvicorn, websockets or grpclib the server starts and says what is missing.",
    ),
    "image.supply": (
        "docs/deploy.md#contents-of-the-image",
        "The image has a bill of materials, licences that may be shipped, and no unused data of packages.",
    ),
    "settings.schema": (_FILE, "A JSON Schema of agui.toml marks the mistakes that would stop the start."),
}
