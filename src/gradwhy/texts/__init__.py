"""The words: short messages by key and the causes' pages, in every language."""

from gradwhy.texts.catalogs import LANGUAGES, Page, PageError, page, slugs, templates
from gradwhy.texts.filling import FillError, fill, harmless, render_text, say
from gradwhy.texts.localizing import localize

__all__ = [
    "LANGUAGES",
    "FillError",
    "Page",
    "PageError",
    "fill",
    "harmless",
    "localize",
    "page",
    "render_text",
    "say",
    "slugs",
    "templates",
]
