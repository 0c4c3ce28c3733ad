"""Contents of the image: no unused parts of packages, a bill of materials, and licences that may be shipped."""

import ast
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.image.prepare import OWN_SERVICES, Package, bill_of_materials, license_lines, read_packages
from tests.packaging.test_packaging import ROOT, make, of, stages
from tests.requirements import requirement

MAY_BE_SHIPPED = {
    *("0BSD", "Apache-2.0", "Apache Software License", "BSD-2-Clause", "BSD-3-Clause", "BSD License"),
    *("3-Clause BSD License", "ISC", "MIT", "MIT-0", "MIT License", "PSF-2.0"),
    # Files under these stay under them; linking to them, as Python does, is allowed.
    *("LGPL-3.0-only", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0"),
}


@pytest.fixture(scope="module")
def packages() -> Sequence[Package]:
    """The packages of the image, as the environment of the tests has them, too."""
    return read_packages(Path(sysconfig.get_path("purelib")), (ROOT / "requirements.lock").read_text())


@requirement("image.supply")
def test_the_bill_of_materials_is_cyclonedx_and_has_every_package_of_the_lock(packages: Sequence[Package]) -> None:
    bill = bill_of_materials(packages, "0.1.0")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
    locked = re.findall(r"^[a-z0-9-]+(?:\[.*\])?==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    components = bill["components"]
    assert isinstance(components, list)
    assert len(components) == len(locked)


@requirement("image.supply")
def test_every_package_has_a_licence_under_which_it_may_be_shipped(packages: Sequence[Package]) -> None:
    found = {
        package.name: set(re.split(r" AND | OR |\((?=.* OR )|\)$", package.license)) - {""} for package in packages
    }
    assert {name: terms - MAY_BE_SHIPPED for name, terms in found.items() if not terms <= MAY_BE_SHIPPED} == {}
    assert len(license_lines(packages).splitlines()) == len(packages)


def prepare(folder: Path, lock: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Prepare an environment with one package, a test folder and the data of two AWS services."""
    site, application = folder / "site-packages", folder / "agui"
    for name in ("botocore/data/s3", "botocore/data/sts", "boto3/data/s3", "small/tests", "small/inner/tests"):
        (site / name).mkdir(parents=True)
        (site / name / "file.json").write_text("x" * 1000)
    (site / "botocore" / "data" / "endpoints.json").touch()
    (site / "small-1.0.dist-info").mkdir()
    (site / "small-1.0.dist-info" / "METADATA").write_text("Name: Small\nVersion: 1.0\nLicense-Expression: MIT\n")
    (application / "agui_container").mkdir(parents=True)
    (application / "agui_container" / "__init__.py").write_text('__version__ = "7.8.9"\n')
    (application / "agui_container" / "page.js").write_bytes(bytes(2_000_000))
    (folder / "lock").write_text(lock)
    script = ROOT / "deploy" / "image" / "prepare.py"
    command = [sys.executable, "-I", *map(str, (script, site, folder / "lock", application)), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@requirement("image.supply")
def test_unused_parts_go_and_what_is_left_is_listed(tmp_path: Path) -> None:
    done = prepare(tmp_path, "small==1.0  # via nobody\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "site-packages/botocore/data").iterdir()) == [
        "endpoints.json",
        "sts",
    ]
    assert not (tmp_path / "site-packages/boto3/data/s3").exists()
    assert not (tmp_path / "site-packages/small/tests").exists()
    assert (tmp_path / "site-packages/small/inner/tests").exists()  # an application may have a module of this name
    assert (tmp_path / "agui/licenses.txt").read_text() == "small==1.0  MIT\n"
    bill = json.loads((tmp_path / "agui/sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == "7.8.9"
    assert [each["purl"] for each in bill["components"]] == ["pkg:pypi/small@1.0"]


@requirement("image.supply")
@pytest.mark.parametrize(("named", "left"), [("s3", ["s3", "sts"]), ("all", ["s3", "sts"]), ("ec2", ["sts"])])
def test_services_that_an_agent_needs_stay(tmp_path: Path, named: str, left: list[str]) -> None:
    prepare(tmp_path, "small==1.0\n", "--aws-services", named)
    assert sorted(path.parent.name for path in tmp_path.glob("site-packages/botocore/data/*/file.json")) == left


@requirement("image.supply")
@pytest.mark.parametrize(
    ("lock", "options", "reason"),
    [
        ("small==1.1\n", (), "small 1.1 of the lock is not installed"),
        ("small==1.0\n", ("--most-megabytes", "1"), "the packages and the application have more than 1 MB"),
    ],
)
def test_a_build_fails_for_another_version_and_for_an_image_that_is_too_large(
    tmp_path: Path, lock: str, options: Sequence[str], reason: str
) -> None:
    done = prepare(tmp_path, lock, *options)
    assert done.returncode == 1
    assert reason in done.stderr


def called_services() -> set[str]:
    """The AWS services that the application makes clients of."""
    calls = (
        node
        for path in (ROOT / "app").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "client"
    )
    return {str(call.args[0].value) for call in calls if call.args and isinstance(call.args[0], ast.Constant)}


@requirement("image.supply")
def test_the_services_that_the_server_calls_stay() -> None:
    assert {"bedrock-runtime", "bedrock-agentcore"} <= called_services() <= set(OWN_SERVICES)


@requirement("image.supply")
def test_the_image_is_prepared_after_its_packages_are_installed() -> None:
    _, build, _ = stages()
    install, finish = of(build, "RUN")
    assert "pip" in install
    assert re.match("python -m compileall -q /opt/agui +&& python /tmp/prepare.py /opt/venv/lib/", finish)
    assert 'AWS_SERVICES="s3 ec2"' in make("-n", "image", "AWS_SERVICES=s3 ec2").stdout
    assert "AWS_SERVICES" not in make("-n", "image").stdout


@requirement("image.supply")
def test_nothing_in_the_final_image_needs_a_shell() -> None:
    final = stages()[-1]
    assert not of(final, "RUN")
    for instruction in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(of(final, instruction)[0]), list)
    [check] = of(final, "HEALTHCHECK")
    assert json.loads(check.partition(" CMD ")[2])[0] == "python"
