"""Which of the site's own drawings stands for a product category."""

from functools import lru_cache

from django.contrib.staticfiles import finders
from django.utils.text import slugify

DEFAULT = "img/categories/default.svg"


@lru_cache(maxsize=1024)
def category_image(category: str) -> str:
    """Path under static/ of the drawing for `category`; the plain one where there is none."""
    path = f"img/categories/{slugify(category)}.svg"
    return path if finders.find(path) else DEFAULT


def category_name(category: str) -> str:
    """A category as people read it: "Garden and tools"."""
    return category.replace("-", " ").capitalize()
