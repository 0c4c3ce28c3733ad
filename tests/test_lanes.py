"""Each test is in exactly one lane."""

from pathlib import Path

import pytest

from tests.lanes import FOLDERS, LONG, TESTS, marks_of_module


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("pytestmark = pytest.mark.browser\n", {"browser"}),
        ("pytestmark = [pytest.mark.wire, pytest.mark.packages]\n", {"wire", "packages"}),
        ("if True:\n    pytestmark = pytest.mark.browser\n", set()),
        ("@pytest.mark.browser\ndef test(): ...\n", set()),
        ('"""Not a pytestmark = pytest.mark.browser."""\n', set()),
    ],
)
def test_a_module_is_left_out_only_for_marks_of_all_its_tests(tmp_path: Path, text: str, marks: set[str]) -> None:
    (tmp_path / "module.py").write_text(text)
    assert marks_of_module(tmp_path / "module.py") & {"browser", "wire", "packages"} == marks


def test_every_folder_of_the_table_exists_and_has_a_mark_of_the_long_lane() -> None:
    assert [name for name, mark in FOLDERS.items() if not (TESTS / name).is_dir() or mark not in LONG] == []
