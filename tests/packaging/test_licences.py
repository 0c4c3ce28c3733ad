"""The bill of materials of the image, and licences that may be shipped."""

import json
import re
import sysconfig
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.image.prepare import Package, bill_of_materials, license_lines, read_packages
from tests.packaging.test_locks import IMAGE, ROOT, locked

pytestmark = pytest.mark.packages

MAY_BE_SHIPPED = {
    *("0BSD", "Apache-2.0", "Apache Software License", "BSD-2-Clause", "BSD-3-Clause", "BSD License"),
    *("3-Clause BSD License", "ISC", "MIT", "MIT-0", "MIT License", "PSF-2.0"),
    # Files under these stay under them; linking to them, as Python does, is allowed.
    *("LGPL-3.0-only", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0"),
}


@pytest.fixture(scope="module")
def packages() -> list[Package]:
    """The packages of the image, as the environment of the tests has them, too."""
    return list(read_packages(Path(sysconfig.get_path("purelib")), (ROOT / "locks" / IMAGE).read_text()))


def test_the_bill_of_materials_is_cyclonedx_and_has_every_package_of_the_lock(packages: list[Package]) -> None:
    bill = bill_of_materials(packages, "0.1.0")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
    components = bill["components"]
    assert isinstance(components, list)
    assert len(components) == len(locked(IMAGE))


def test_every_package_has_a_licence_under_which_it_may_be_shipped(packages: list[Package]) -> None:
    found = {
        package.name: set(re.split(r" AND | OR |\((?=.* OR )|\)$", package.license)) - {""} for package in packages
    }
    assert {name: terms - MAY_BE_SHIPPED for name, terms in found.items() if not terms <= MAY_BE_SHIPPED} == {}
    assert len(license_lines(packages).splitlines()) == len(packages)
