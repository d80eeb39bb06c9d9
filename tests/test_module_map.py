"""The map of the modules is the code's, and every module says what it is."""

from tests import module_map


def test_every_module_says_what_it_is() -> None:
    silent = [
        path.relative_to(module_map.ROOT).as_posix()
        for package in module_map.PACKAGES
        for path in module_map.modules(package)
        if not module_map.first_sentence(path)
    ]
    assert silent == []


def test_the_map_is_drawn_from_the_code_as_it_is() -> None:
    assert module_map.PAGE.read_text() == module_map.page(), "out of date: make module-map"
