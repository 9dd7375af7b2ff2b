"""Every message stands in every language and fits its values; a text that does not fit never stops a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import gradwhy
from gradwhy.flow import Finding, Report, Text
from gradwhy.texts import (
    LANGUAGES,
    FillError,
    PageError,
    catalogs,
    fill,
    harmless,
    localize,
    page,
    render_text,
    say,
    slugs,
    templates,
)
from samples import SAMPLES, chinese_report, common, long_report, mask_report

SOURCES = Path(gradwhy.__file__).parent
SECTIONS = "headline|lists|labels|notes|fixes|frame|closing|report|settings|cli"
# Keys that are put together from a word of the model, such as `frame/error`.
BUILT = re.compile(r"(headline|lists|frame)/.*")
# Words that a cause may use: they are there before the cause that needs them.
OFFERED = re.compile(r"(labels|notes)/.*")
REFUSALS = {"ReportError": "report", "SettingsError": "settings", "refusal": "cli"}


def placeholders(pattern: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(pattern) if name is not None}


def keys_in_source() -> set[str]:
    """The common keys that the source names: as a string, or as the word with which something is refused."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(part, ast.Constant) and re.fullmatch(rf"({SECTIONS})/[\w/-]+", str(part.value)):
                found.add(str(part.value))
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in REFUSALS:
                word = part.args[0]
                if isinstance(word, ast.Constant):
                    found.add(f"{REFUSALS[part.func.id]}/{word.value}")
    return found


def test_both_languages_have_the_same_keys_with_the_same_placeholders() -> None:
    english, chinese = templates("en"), templates("zh")
    assert set(english) == set(chinese)
    for key in set(english) - {"lists/more"}:
        assert placeholders(english[key]) == placeholders(chinese[key]), key


def test_every_key_that_the_source_names_exists() -> None:
    named = keys_in_source()
    assert len(named) > 30
    assert named - set(templates("en")) == set()


def test_every_message_is_named_by_the_source() -> None:
    needed = {k for k in templates("en") if not BUILT.fullmatch(k) and not OFFERED.fullmatch(k)}
    assert needed - keys_in_source() == set()


def test_every_symptom_and_severity_has_its_words() -> None:
    for symptom in ("none", "zero", "nan", "error"):
        assert {f"headline/{symptom}", f"headline/{symptom}-many"} <= set(templates("en"))
    assert {"frame/error", "frame/warning", "frame/note"} <= set(templates("en"))


def test_english_messages_are_lower_case_without_a_full_stop() -> None:
    for key, pattern in templates("en").items():
        words = re.sub(r"^\W*\{\w+\}\W*|^gradwhy: ", "", pattern)
        assert not re.match(r"[A-Z][a-z]", words), key
        assert not pattern.endswith("."), key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SAMPLES)
def test_no_text_of_a_report_falls_back_to_its_key(name: str, language: str) -> None:
    for text in texts_of(localize(SAMPLES[name](), language)):
        assert text.text and text.key not in text.text


def texts_of(report: Report) -> list[Text]:
    def of(finding: Finding) -> list[Text]:
        helped = [finding.help] if finding.help else []
        return [finding.headline, *(label.text for label in finding.labels), *finding.notes, *helped]

    return [text for finding in report.findings for text in of(finding)]


@pytest.mark.parametrize(
    ("names", "english", "chinese"),
    [
        (["x"], "no gradient reaches `x`", "梯度到不了 `x`"),
        (["a", "b"], "no gradient reaches `a` and `b`", "梯度到不了 `a` 和 `b`"),
        (["a", "b", "c"], "no gradient reaches `a`, `b` and `c`", "梯度到不了 `a`、`b` 和 `c`"),
        (list("abcde"), "no gradient reaches `a`, `b`, `c` and 2 more", "梯度到不了 `a`、`b`、`c` 等 5 个源"),
    ],
)
def test_headline_names_up_to_three_sources(names: list[str], english: str, chinese: str) -> None:
    headline = Text("headline/none" if len(names) == 1 else "headline/none-many", common(*names))
    assert render_text(headline, "en") == english
    assert render_text(headline, "zh") == chinese


def test_counts_choose_their_word() -> None:
    assert (
        say("closing/findings", "en", questions=1, sources=2, findings=1) == "gradwhy: 1 question, 2 sources, 1 finding"
    )
    assert (
        say("closing/findings", "en", questions=3, sources=1, findings=0)
        == "gradwhy: 3 questions, 1 source, 0 findings"
    )
    assert (
        say("closing/findings", "zh", questions=3, sources=1, findings=0) == "gradwhy：3 次梯度请求，1 个源，0 条诊断"
    )


def test_a_frameworks_own_words_win_over_the_general_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = {"labels/cut": "cut", "labels/cut@torch": "cut in PyTorch"}
    monkeypatch.setattr(catalogs, "templates", lambda language: messages if language == "en" else {})
    assert render_text(Text("labels/cut"), "en", "torch") == "cut in PyTorch"
    assert render_text(Text("labels/cut"), "en", "jax") == "cut"
    assert render_text(Text("labels/cut"), "en") == "cut"
    # A language that lacks the text shows the English one.
    assert render_text(Text("labels/cut"), "zh", "torch") == "cut in PyTorch"


def test_a_causes_own_text_is_found_in_its_page() -> None:
    text = Text("outside-tape/labels/cut", {"source": "x"})
    assert render_text(text, "en", "tensorflow") == page("outside-tape", "en").templates["labels/cut"]
    assert render_text(text, "en", "torch") == page("outside-tape", "en").templates["labels/cut@torch"].format(
        source="x"
    )
    assert render_text(text, "zh", "tensorflow") == page("outside-tape", "zh").templates["labels/cut"]


def test_an_unknown_key_shows_the_saved_words_and_else_the_key() -> None:
    assert render_text(Text("labels/of-a-later-version", {}, "saved words"), "zh") == "saved words"
    assert render_text(Text("labels/of-a-later-version"), "en") == "labels/of-a-later-version"
    assert render_text(Text("no-such-cause/labels/cut"), "en") == "no-such-cause/labels/cut"


def test_a_missing_value_shows_the_saved_words_and_else_the_key() -> None:
    assert render_text(Text("labels/enters", {}, "enters"), "en") == "enters"
    assert render_text(Text("labels/enters"), "en") == "labels/enters"
    with pytest.raises(FillError, match="name"):
        fill("`{name}` enters", {}, "en")


@pytest.mark.parametrize("pattern", ["{", "{0}", "{a.b}", "{a!x}", "{a:d}"])
def test_a_broken_template_is_refused_and_never_ends_in_another_error(pattern: str) -> None:
    with pytest.raises(FillError):
        fill(pattern, {"a": 1.5}, "en")


def test_numbers_keep_their_format_and_words_for_numbers_are_taken_as_they_are() -> None:
    assert fill("{norm:.2f}", {"norm": 1.234}, "en") == "1.23"
    # A saved report holds NaN as the string "nan".
    assert fill("{norm:.2f}", {"norm": "nan"}, "en") == "nan"


def test_values_cannot_steer_the_terminal() -> None:
    text = Text("labels/enters", {"name": "x\x1b[2J\r\n\u202e\u200b\ud800"})
    assert render_text(text, "en") == "`x\\x1b[2J\\r\\n\\u202e\\u200b\\ud800` enters as a constant"
    assert harmless("中文 é ∇ 🙂 combining e\u0301") == "中文 é ∇ 🙂 combining e\u0301"
    assert harmless("\x9b\u2028\u061c\U000e0001") == "\\x9b\\u2028\\u061c\\U000e0001"


def test_saved_words_of_a_foreign_report_cannot_steer_the_terminal() -> None:
    assert render_text(Text("no/such", {}, "\x1b[2J"), "en") == "\\x1b[2J"


def test_values_with_braces_are_not_read_as_templates() -> None:
    assert (
        render_text(Text("labels/enters", {"name": "params{0}['{x}']"}), "en")
        == "`params{0}['{x}']` enters as a constant"
    )


def test_a_report_is_localized_with_the_framework_of_each_question() -> None:
    report = localize(mask_report(), "zh")
    assert report.language == "zh"
    assert report.findings[0].headline.text == "梯度到不了 `x`"
    assert [label.text.text for label in report.findings[0].labels] == [
        "在 tape 开始记录之前就已执行",
        "记录从这里开始",
        "`x_` 作为常量进入",
        "目标",
    ]
    assert localize(report, "en").findings[0].headline.text == "no gradient reaches `x`"
    assert localize(long_report(), "en").findings[0].headline.text.endswith("and 4 more")
    assert localize(chinese_report(), "en").findings[0].headline.text == "no gradient reaches `权重`"


def test_causes_are_found_by_their_folders(
    tmp_path: Path, fresh_catalogs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "_CAUSES", tmp_path)
    write_page(
        tmp_path / "some_cause" / "en.md", 'title = "a title"\n[labels]\ncut = "cut here"\n"cut@jax" = "cut in JAX"'
    )
    (tmp_path / "no_cause").mkdir()
    assert slugs() == ("some-cause",)
    assert page("some-cause", "en").title == "a title"
    assert page("some-cause", "zh").language == "en"
    assert page("some-cause", "en").body == "## What happens\n\nIt breaks.\n"
    assert render_text(Text("some-cause/labels/cut"), "zh", "jax") == "cut in JAX"
    with pytest.raises(KeyError):
        page("no-cause", "en")


@pytest.mark.parametrize("matter", ["title = 3", 'title = "unclosed', "", "[labels]\ncut = 'no title'"])
def test_a_broken_page_is_named_and_its_texts_fall_back(
    matter: str, tmp_path: Path, fresh_catalogs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "_CAUSES", tmp_path)
    write_page(tmp_path / "some_cause" / "en.md", matter)
    with pytest.raises(PageError, match=r"en\.md of some-cause"):
        page("some-cause", "en")
    assert render_text(Text("some-cause/labels/cut", {}, "saved"), "en") == "saved"


def write_page(path: Path, matter: str) -> None:
    path.parent.mkdir()
    path.write_text(f"+++\n{matter}\n+++\n\n## What happens\n\nIt breaks.\n", encoding="utf-8")


@pytest.fixture
def fresh_catalogs() -> Iterator[None]:
    """Catalogues that were read for this test alone."""
    catalogs.slugs.cache_clear()
    catalogs.page.cache_clear()
    yield
    catalogs.slugs.cache_clear()
    catalogs.page.cache_clear()
