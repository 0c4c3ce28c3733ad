"""The wheels of this server and of its Python client, for projects that are installed elsewhere.

Rule: no index has these packages, so nothing may ask one for them. What is installed is packed again from its files,
because the wheel or the repository that pip took it from may be gone.
"""

import io
import json
import re
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from msgspec import Struct

SERVER, CLIENT = "agui-container", "agui-client"

NOT_PACKED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files that an installer writes beside the metadata of a wheel."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same files make the same wheel."""


class WheelError(Exception):
    """There is no wheel of a package. The message is for the operator."""


class Wheel(Struct, frozen=True):
    """A wheel, and the path of its file in a project."""

    path: str
    content: bytes


def find_wheel(package: str) -> Wheel:
    """Pack a package as it is installed. Raises ``WheelError`` if it is not, or runs from a checkout."""
    try:
        found = distribution(package)
    except PackageNotFoundError:
        raise WheelError(f"{package} is not installed. Install its wheel.") from None
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        raise WheelError(f"{package} runs from a checkout. Install its wheel, which `pip wheel --no-deps` makes.")
    return _packed(found)


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
