"""The wheels of this server and of its Python client, for projects and images that are installed elsewhere.

Rule: no index has these packages, so nothing may ask one for them. What is installed is packed again from its files,
because the wheel or the repository that pip took it from may be gone. A checkout is built by pip.
"""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct

SERVER, CLIENT = "agui-container", "agui-client"
CHECKOUT_FOLDERS = {SERVER: ".", CLIENT: "clients/python"}
"""The packages, and their folders in a checkout."""

NOT_PACKED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files that an installer writes beside the metadata of a wheel."""

EPOCH = (1980, 1, 1, 0, 0, 0)
BUILD_VARIABLES = {"SOURCE_DATE_EPOCH": "315532800"}
"""The same files make the same wheel."""

BUILD_SECONDS = 300.0


class WheelError(Exception):
    """There is no wheel of a package. The message is for the operator."""


class Wheel(Struct, frozen=True):
    """A wheel, and the path of its file in a project or an image."""

    path: str
    content: bytes


@cache
def find_wheel(package: str) -> Wheel:
    name, content = _find(package)
    return Wheel(f"wheels/{name}", content)


def _find(package: str) -> tuple[str, bytes]:
    try:
        found = distribution(package)
    except PackageNotFoundError:
        folder = Path(__file__).parents[4] / CHECKOUT_FOLDERS[package]
        if (folder / "pyproject.toml").is_file():
            return _built(folder)
        raise WheelError(f"{package} is not installed. Install its wheel.") from None
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return _built(Path(url2pathname(urlsplit(origin["url"]).path)))
    return _packed(found)


def _packed(found: Distribution) -> tuple[str, bytes]:
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
    return f"{metadata.name.removesuffix('.dist-info')}-{tag[1]}.whl", buffer.getvalue()


def _built(folder: Path) -> tuple[str, bytes]:
    """Build the wheel of a folder of a checkout, and leave no file there."""
    with TemporaryDirectory() as made:
        config = Path(made, "setuptools.cfg")
        config.write_text(f"[build]\nbuild_base = {made}/build\n[egg_info]\negg_base = {made}\n", encoding="utf-8")
        variables = {**os.environ, **BUILD_VARIABLES, "DIST_EXTRA_CONFIG": str(config)}
        command = [sys.executable, "-I", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, str(folder)]
        done = subprocess.run(  # noqa: S603 - pip of this environment
            command, env=variables, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
        if done.returncode:
            raise WheelError(f"pip cannot build a wheel of {folder}:\n{done.stderr.strip()}")
        [built] = Path(made).glob("*.whl")
        return built.name, built.read_bytes()
