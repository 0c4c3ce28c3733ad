"""Prepare the packages of the image: remove what no server uses, list what is left, and check the size of all.

    python prepare.py SITE_PACKAGES LOCK APPLICATION [--aws-services "s3 dynamodb"] [--most-megabytes 230]

The build stage of ``Dockerfile.arm64`` runs it with the base's Python, so it needs the standard library only. It writes
two files beside the package in the folder ``APPLICATION``: ``sbom.cdx.json``, a bill of materials in CycloneDX's form,
and ``licenses.txt``.

Removed are the tests of packages and the data of AWS services that this server does not call. boto3 cannot make clients
of these services afterwards, so an agent that needs some names them (``make image AWS_SERVICES="s3 dynamodb"``).
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

OWN_SERVICES = ("bedrock-agentcore", "bedrock-runtime", "s3", "secretsmanager", "signin", "sso", "sso-oidc", "sts")
"""AWS services that this server calls: models, AgentCore Memory, files, secrets, and those that give credentials."""

ALL_SERVICES = "all"

SPEC_VERSION = "1.6"

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#]+)", re.MULTILINE)

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Package:
    """A package of the lock.

    Attributes:
        name: its name, normalized.
        version: its exact version.
        license: its licence as the package states it, in SPDX's terms where it does so.
    """

    name: str
    version: str
    license: str

    @property
    def purl(self) -> str:
        """Package URL, which names the package in bills of materials and lists of vulnerabilities."""
        return f"pkg:pypi/{self.name}@{self.version}"


def normalized(name: str) -> str:
    """Return a package's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def license_of(distribution: Distribution) -> str:
    """Return the licence: an SPDX expression, else the classifiers, else the first line of the text field."""
    read = distribution.metadata.get_all
    expressions = read("License-Expression") or ()
    classifiers = [line.rpartition(" :: ")[2] for line in read("Classifier") or () if line.startswith("License ::")]
    stated = [line for text in read("License") or () for line in text.strip().splitlines()]
    return next(filter(None, [*expressions, " AND ".join(classifiers), *stated]), "unknown")


def read_packages(site_packages: Path, lock: str) -> list[Package]:
    """Return the packages of a lock with the licences of those that are installed.

    Raises:
        SystemExit: a package is not installed in the version of the lock.
    """
    installed = {normalized(each.name): each for each in distributions(path=[str(site_packages)])}
    packages: list[Package] = []
    for found in PINNED.finditer(lock):
        name, version = normalized(found["name"]), found["version"]
        distribution = installed.get(name)
        if distribution is None or distribution.version != version:
            sys.exit(f"{name} {version} of the lock is not installed in {site_packages}")
        packages.append(Package(name, version, license_of(distribution)))
    return packages


def version_of(application: Path) -> str:
    """Return the version of the application in this folder, without importing it."""
    found = re.search(
        r'^__version__ = "(.+)"$', (application / "agui_container" / "__init__.py").read_text(), re.MULTILINE
    )
    return found[1] if found else sys.exit(f"there is no version in {application}")


def bill_of_materials(packages: Sequence[Package], version: str) -> dict[str, object]:
    """Return a bill of materials in CycloneDX's JSON form. It has no date, so the same lock gives the same bill."""
    root = f"pkg:pypi/agui-container@{version}"
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "agui-container",
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": package.purl,
                "name": package.name,
                "version": package.version,
                "purl": package.purl,
                "licenses": [{"license": {"name": package.license}}],
            }
            for package in packages
        ],
        "dependencies": [{"ref": root, "dependsOn": [package.purl for package in packages]}],
    }


def license_lines(packages: Sequence[Package]) -> str:
    """Return one line for each package: its name, its version and its licence."""
    return "".join(f"{package.name}=={package.version}  {package.license}\n" for package in packages)


def unused_folders(site_packages: Path, services: Sequence[str]) -> Iterator[Path]:
    """Iterate the folders that no server uses: tests of packages, and data of other AWS services."""
    for name in ("test", "tests"):
        yield from (path for path in site_packages.glob(f"*/{name}") if path.is_dir())
    if ALL_SERVICES in services:
        return
    for data in (site_packages / "botocore" / "data", site_packages / "boto3" / "data"):
        if data.is_dir():
            yield from (path for path in data.iterdir() if path.is_dir() and path.name not in services)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def main() -> None:
    """Prepare the packages. Raises ``SystemExit`` if they and the application are too large afterwards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site_packages", type=Path)
    parser.add_argument("lock", type=Path)
    parser.add_argument("application", type=Path)
    parser.add_argument("--aws-services", default="", help=f"services that stay, or {ALL_SERVICES}")
    parser.add_argument("--most-megabytes", type=int, default=230)
    options = parser.parse_args()
    before = size_of(options.site_packages)
    for folder in list(unused_folders(options.site_packages, (*OWN_SERVICES, *options.aws_services.split()))):
        shutil.rmtree(folder)
    packages = read_packages(options.site_packages, options.lock.read_text())
    bill = bill_of_materials(packages, version_of(options.application))
    (options.application / "sbom.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")
    (options.application / "licenses.txt").write_text(license_lines(packages))
    after, own = size_of(options.site_packages), size_of(options.application)
    print(f"packages: {before / MEGABYTE:.0f} MB installed, {after / MEGABYTE:.0f} MB kept")  # noqa: T201 - a build's log
    print(f"application: {own / MEGABYTE:.0f} MB")  # noqa: T201 - the same
    if after + own > options.most_megabytes * MEGABYTE:
        sys.exit(f"the packages and the application have more than {options.most_megabytes} MB")


if __name__ == "__main__":
    main()
