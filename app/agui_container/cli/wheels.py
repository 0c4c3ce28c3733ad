"""The wheels of this server and of its Python client, for projects that are installed elsewhere.

Rule: no index has these packages, so nothing may ask one for them. What is installed is packed again from its files,
because the wheel or the repository that pip took it from may be gone. What runs from a checkout is built by pip, which
leaves no file there.
"""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

SERVER, CLIENT = "agui-container", "agui-client"
CHECKOUT = Path(__file__).parents[3]
FOLDERS = {SERVER: CHECKOUT, CLIENT: CHECKOUT / "clients" / "python"}
"""The packages, and their folders if this module runs from a checkout."""

NOT_PACKED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files that an installer writes beside the metadata of a wheel."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same files make the same wheel."""

BUILD_SECONDS = 300.0


class WheelError(Exception):
    """There is no wheel of a package. The message is for the operator."""


class Wheel(Struct, frozen=True):
    """A wheel, and the path of its file in a project."""

    path: str
    content: bytes


def find_wheel(package: str) -> Wheel:
    """Pack a package as it is installed, or build it from its checkout. Raises ``WheelError``."""
    installed = [found for found in distributions(name=package) if is_from_wheel(found)]
    return _packed(installed[0]) if installed else _built(package)


def is_from_wheel(found: Distribution) -> bool:
    """Return False for an editable installation, and for the ``egg-info`` that a build leaves in a checkout."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    return found.read_text("WHEEL") is not None and not origin.get("dir_info", {}).get("editable")


def _packed(found: Distribution) -> Wheel:
    files = {
        file.as_posix(): file.read_binary()
        for file in found.files or ()
        if ".." not in file.parts and "__pycache__" not in file.parts and file.name not in NOT_PACKED
    }
    metadata = next((Path(name).parent for name in files if name.endswith(".dist-info/METADATA")), None)
    tag = re.search(r"^Tag: (\S+)$", found.read_text("WHEEL") or "", re.MULTILINE)
    if metadata is None or tag is None:
        raise WheelError(f"{found.name} is installed without a list of its files. Install it again from its wheel.")
    record = f"{metadata}/RECORD"
    files[record] = "\n".join(
        row for row in (found.read_text("RECORD") or "").splitlines() if row.partition(",")[0] in {*files, record}
    ).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    name = metadata.name.removesuffix(".dist-info")
    return Wheel(f"wheels/{name}-{tag[1]}.whl", buffer.getvalue())


def _built(package: str) -> Wheel:
    folder = FOLDERS[package]
    if not (folder / "pyproject.toml").is_file():
        raise WheelError(f"{package} is not installed. Install its wheel.")
    with TemporaryDirectory() as made:
        config = Path(made, "setuptools.cfg")
        config.write_text(f"[build]\nbuild_base = {made}/build\n[egg_info]\negg_base = {made}\n", encoding="utf-8")
        command = [sys.executable, "-P", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, str(folder)]
        env = {**os.environ, "DIST_EXTRA_CONFIG": str(config)}
        try:
            subprocess.run(command, env=env, capture_output=True, text=True, timeout=BUILD_SECONDS, check=True)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise WheelError(f"pip has not built {folder} within {BUILD_SECONDS:g} seconds.") from None
        except subprocess.CalledProcessError as error:
            raise WheelError(f"pip cannot build {folder}:\n{error.stderr.strip()}") from None
        [wheel] = Path(made).glob("*.whl")
        return Wheel(f"wheels/{wheel.name}", wheel.read_bytes())
