"""Facts about classes are computed once, and for a bounded number of classes."""

from agui_container.protocol.type_cache import MAX_TYPES, TypeCache


def test_a_fact_about_a_class_is_computed_once() -> None:
    asked: list[type] = []

    def name(kind: type) -> str:
        asked.append(kind)
        return kind.__name__

    known = TypeCache(name)
    assert [known[int], known[str], known[int]] == ["int", "str", "int"]
    assert asked == [int, str]


def test_classes_without_end_do_not_fill_the_memory() -> None:
    known = TypeCache(lambda kind: kind.__name__)
    for number in range(2 * MAX_TYPES):
        assert known[type(f"Event{number}", (), {})] == f"Event{number}"
    assert len(known) <= MAX_TYPES
