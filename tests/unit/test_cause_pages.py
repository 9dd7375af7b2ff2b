"""Every cause has a page in each language, with the same messages, and examples that do what the page says."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import string
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import gradwhy
from gradwhy import texts

CAUSES = Path(gradwhy.__file__).parent / "causes"
LANGUAGES = ("en", "zh")
FRAMEWORKS = ("tensorflow", "torch", "jax")
TABLES = ("labels", "notes", "help")
SECTIONS = {
    "en": ("What happens", "Why", "Example", "What to do", "When it is intended"),
    "zh": ("现象", "原因", "示例", "怎么改", "什么时候是有意的"),
}
# Said by the causes that have fixes.
FIX_SAFETY = {"en": "Fix safety", "zh": "修改的安全性"}
PLACEHOLDERS = frozenset(
    "sources source target op line scope recording name function dtype stand_in opens closes".split()
)
EXTRA_PLACEHOLDERS = {
    "left-framework": frozenset({"native"}),
    "no-gradient-registered": frozenset({"native", "framework_name"}),
}

# Beside `title`, `labels.cut` and `help.default`, which every cause has.
REQUIRED = {
    "outside-tape": "help.move help.call help.init help.loop-invariant notes.cached",
    "after-tape": "labels.target-after help.extend help.second-order help.persistent-second-order",
    "paused": "help.move-out help.decorator help.switch",
    "not-watched": "labels.late help.watch help.watch-outer help.watch-value help.requires-grad help.early",
    "frozen": "labels.statistic help.trainable help.statistic help.unfreeze",
    "left-framework": "labels.back notes.likely help.native help.predict help.numpy-function help.py-function",
    "rewrapped": "",
    "detached": "help.remove help.both-branches",
    "non-differentiable-op": "labels.index labels.condition labels.sample labels.cast help.argmax help.round "
    "help.threshold help.sample help.metric help.rank help.index",
    "integer-dtype": "labels.source help.source help.cast help.tokens",
    "state-write": "help.functional",
    "rebound": "labels.used help.same-forward help.clone help.symbolic",
    "unused": "labels.last-use labels.defined help.derivative-zero help.never-called",
    "wrong-tape": "labels.first-question help.persistent help.one-call help.recompute help.retain",
    "custom-gradient": "labels.none labels.zero",
    "no-gradient-registered": "help.native",
    "non-leaf": "",
    "in-place": "",
    "unregistered": "labels.made-in-call labels.not-tracked labels.optimizer-older help.track help.create-once "
    "help.optimizer",
    "closed-over": "",
    "saturated": "",
    "numeric": "",
    "cleared": "",
    "non-scalar-target": "",
    "not-updated": "",
    "unknown": "notes.not-seen notes.other-thread notes.compiled notes.dropped notes.complete-path",
}

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.M | re.S)
# A Chinese character that touches a Latin word, a number, a placeholder or code without a space between them.
CROWDED = re.compile(r"[一-鿿][A-Za-z0-9{`]|[A-Za-z0-9}`][一-鿿]")
HALF_WIDTH = re.compile(r"[一-鿿`)][,.;:!?](?![A-Za-z0-9])|[一-鿿]\(|\)[一-鿿]")


@dataclass(frozen=True)
class Page:
    """One page: its title, its messages by `table.key`, and its body."""

    title: str
    messages: dict[str, str]
    body: str

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(re.findall(r"^## (.+)$", FENCE.sub("", self.body), re.M))


@dataclass(frozen=True)
class Example:
    """One fenced program of a page."""

    framework: str
    verdict: str
    code: str


def read_page(text: str) -> Page:
    start, front, body = text.split("+++\n", 2)
    assert start == "", "the front matter stands first"
    given = tomllib.loads(front)
    messages = {f"{table}.{key}": text for table in TABLES for key, text in given.get(table, {}).items()}
    strange = set(given) - {"title", *TABLES}
    assert not strange, f"unknown tables: {strange}"
    return Page(given.get("title", ""), messages, body)


def examples_of(page: Page) -> tuple[Example, ...]:
    found = []
    for fence in FENCE.finditer(page.body):
        words = fence["info"].split()
        if words[:1] == ["python"]:
            assert len(words) == 3, f"a fence reads `python FRAMEWORK wrong|right`, not {fence['info']!r}"
            found.append(Example(words[1], words[2], fence["code"]))
    return tuple(found)


def placeholders(message: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(message) if name is not None)


def problems_of(folder: Path) -> Iterator[str]:
    """What is wrong with the pages of one cause."""
    slug = folder.name.replace("_", "-")
    missing = [language for language in LANGUAGES if not (folder / f"{language}.md").is_file()]
    if missing:
        yield f"no page in {', '.join(missing)}"
        return
    pages = {language: read_page((folder / f"{language}.md").read_text("utf-8")) for language in LANGUAGES}
    for language, page in pages.items():
        yield from (f"{language}: {problem}" for problem in problems_of_page(page, slug, language))
    yield from problems_between(pages["en"], pages["zh"])


def problems_of_page(page: Page, slug: str, language: str) -> Iterator[str]:
    for key in ["labels.cut", "help.default", *REQUIRED.get(slug, "").split()]:
        if key not in page.messages:
            yield f"no {key}"
    if not page.title or "\n" in page.title or page.title.endswith((".", "。")):
        yield "the title is one line without a full stop"
    has_fixes = (CAUSES / slug.replace("-", "_") / "fixes.py").is_file()
    if page.sections != (*SECTIONS[language], *([FIX_SAFETY[language]] if has_fixes else [])):
        yield f"the sections are {page.sections}"
    allowed = PLACEHOLDERS | EXTRA_PLACEHOLDERS.get(slug, frozenset())
    for key, message in page.messages.items():
        base, _, framework = key.partition("@")
        if framework and (base not in page.messages or framework not in FRAMEWORKS):
            yield f"{key} is a variant of nothing, or for no framework"
        for name in sorted(placeholders(message) - allowed):
            yield f"{key} has the unknown placeholder {name}"
        if "{sources}" in message and "`{sources}`" in message:
            yield f"{key} has backticks around {{sources}}, which brings its own"
        if "\n" in message or message.endswith((".", "。")):
            yield f"{key} is one line without a full stop"


def problems_between(en: Page, zh: Page) -> Iterator[str]:
    for key in sorted(en.messages.keys() ^ zh.messages.keys()):
        yield f"{key} stands in one language only"
    for key in sorted(en.messages.keys() & zh.messages.keys()):
        if placeholders(en.messages[key]) != placeholders(zh.messages[key]):
            yield f"{key} has other placeholders in zh"
    if [program(e) for e in examples_of(en)] != [program(e) for e in examples_of(zh)]:
        yield "the examples are other programs in zh"


def program(example: Example) -> tuple[str, str, str]:
    """An example without its comments."""
    return example.framework, example.verdict, ast.dump(ast.parse(example.code))


def folder_of(slug: str) -> Path:
    return CAUSES / slug.replace("-", "_")


def english(slug: str) -> Page:
    return read_page((folder_of(slug) / "en.md").read_text("utf-8"))


def chinese(slug: str) -> Page:
    return read_page((folder_of(slug) / "zh.md").read_text("utf-8"))


def test_the_causes_are_those_of_the_design() -> None:
    assert {f.name.replace("_", "-") for f in CAUSES.iterdir() if (f / "__init__.py").is_file()} == set(REQUIRED)


@pytest.mark.parametrize("slug", REQUIRED)
def test_a_cause_has_whole_pages_in_every_language(slug: str) -> None:
    assert list(problems_of(folder_of(slug))) == []


@pytest.mark.parametrize("slug", REQUIRED)
def test_what_is_checked_here_is_what_gradwhy_reads(slug: str) -> None:
    for language, page in (("en", english(slug)), ("zh", chinese(slug))):
        read = texts.page(slug, language)
        assert read.title == page.title and read.body.strip() == page.body.strip()
        assert read.templates == {key.replace(".", "/", 1): message for key, message in page.messages.items()}


@pytest.mark.parametrize("slug", REQUIRED)
def test_messages_are_lower_case_and_fit_a_terminal(slug: str) -> None:
    page = english(slug)
    for key, message in {"title": page.title, **page.messages}.items():
        assert message[0] in "`{" or message[0].islower(), f"{key}: {message}"
        longest = {"title": 80, "labels": 100}.get(key.partition(".")[0], 160)
        assert len(message) <= longest, f"{key} has {len(message)} characters"


@pytest.mark.parametrize("slug", REQUIRED)
def test_chinese_is_set_with_spaces_and_full_width_punctuation(slug: str) -> None:
    page = chinese(slug)
    prose = FENCE.sub("", page.body).replace("*", "").splitlines()
    for text in [page.title, *page.messages.values(), *prose]:
        assert re.search(r"[一-鿿]", text) or not text.strip(), f"not translated: {text}"
        outside_code = re.sub(r"`[^`]*`", "`x`", text)
        assert not CROWDED.search(outside_code), f"no space beside a Latin word: {text}"
        assert not HALF_WIDTH.search(outside_code), f"half-width punctuation: {text}"


@pytest.mark.parametrize("slug", REQUIRED)
def test_chinese_paragraphs_are_not_broken_over_lines(slug: str) -> None:
    """Where Markdown joins two lines it sets a space, which does not belong between Chinese characters."""
    lines = FENCE.sub("\n", chinese(slug).body).splitlines()
    broken = [b for a, b in itertools.pairwise(lines) if a.strip() and b.strip() and not b.startswith("- ")]
    assert broken == []


@pytest.mark.parametrize("slug", REQUIRED)
def test_examples_come_in_pairs_and_end_with_what_they_claim(slug: str) -> None:
    examples = examples_of(english(slug))
    assert examples
    for wrong, right in zip(examples[::2], examples[1::2], strict=True):
        assert (wrong.verdict, right.verdict) == ("wrong", "right")
        assert wrong.framework == right.framework
        for example in (wrong, right):
            assert example.framework in FRAMEWORKS
            assert isinstance(ast.parse(example.code).body[-1], ast.Assert)
        assert program(wrong)[2] != program(right)[2]


def keys_named_by(source: str, slug: str) -> Iterator[str]:
    """The keys of its own cause that a recogniser writes out: in `label=`, in `help=` and in `text("SLUG/...")`."""
    tables = {"label": "labels", "help": "help"}
    for call in (part for part in ast.walk(ast.parse(source)) if isinstance(part, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ("at_cut", "elsewhere"):
            for given in call.keywords:
                if given.arg in tables:
                    yield from (f"{tables[given.arg]}.{word}" for word in words_in(given.value))
        elif name == "text" and call.args and isinstance(call.args[0], ast.Constant):
            key = str(call.args[0].value)
            if key.startswith(f"{slug}/"):
                yield key.removeprefix(f"{slug}/").replace("/", ".")


def words_in(expression: ast.expr) -> Iterator[str]:
    """The strings that an expression may give."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, ast.IfExp):
        yield from (*words_in(expression.body), *words_in(expression.orelse))
    elif isinstance(expression, ast.BoolOp):
        for value in expression.values:
            yield from words_in(value)


@pytest.mark.parametrize("slug", REQUIRED)
def test_every_key_that_a_recogniser_names_has_its_message(slug: str) -> None:
    recogniser = folder_of(slug) / "recognise.py"
    if not recogniser.is_file():
        return
    named = set(keys_named_by(recogniser.read_text("utf-8"), slug))
    assert named - english(slug).messages.keys() == set()


def test_the_keys_of_a_recogniser_are_found_where_it_names_them() -> None:
    source = (
        'at_cut(x, "unused", label="a" if y else "b", help=z or "c", notes=(text("unused/notes/d"), text("labels/e")))'
    )
    assert set(keys_named_by(source, "unused")) == {"labels.a", "labels.b", "help.c", "notes.d"}


GOOD = '+++\ntitle = "a title"\n[labels]\ncut = "{op} here"\n[help]\ndefault = "move {line}"\n+++\n'


def write_cause(folder: Path, en: str = GOOD, zh: str = GOOD) -> Path:
    folder.mkdir()
    code = "```python torch wrong\nassert True\n```\n"
    for language, front in (("en", en), ("zh", zh)):
        body = "".join(f"## {section}\n{code if section == 'Example' else ''}" for section in SECTIONS[language])
        (folder / f"{language}.md").write_text(front + body.replace("## 示例\n", f"## 示例\n{code}"), "utf-8")
    return folder


def test_a_whole_cause_has_no_problem(tmp_path: Path) -> None:
    assert list(problems_of(write_cause(tmp_path / "made_up"))) == []


@pytest.mark.parametrize(
    ("en", "zh", "problem"),
    [
        (GOOD.replace("cut =", "other ="), GOOD.replace("cut =", "other ="), "no labels.cut"),
        (GOOD, GOOD.replace("cut =", "other ="), "labels.cut stands in one language only"),
        (GOOD, GOOD.replace("{line}", "{op}"), "help.default has other placeholders in zh"),
        (GOOD.replace("{op}", "{tensor}"), GOOD.replace("{op}", "{tensor}"), "unknown placeholder tensor"),
        (GOOD.replace("{op}", "{native}"), GOOD.replace("{op}", "{native}"), "unknown placeholder native"),
        (GOOD.replace("{op}", "`{sources}`"), GOOD.replace("{op}", "`{sources}`"), "backticks around {sources}"),
        (GOOD.replace("default =", '"default@caffe" ='), GOOD, "help.default@caffe is a variant of nothing"),
        (GOOD.replace(" here", " here."), GOOD, "labels.cut is one line without a full stop"),
        (GOOD.replace("a title", "a title."), GOOD, "the title is one line without a full stop"),
    ],
)
def test_a_wrong_message_is_refused(tmp_path: Path, en: str, zh: str, problem: str) -> None:
    assert any(problem in found for found in problems_of(write_cause(tmp_path / "made_up", en, zh)))


def test_a_missing_language_is_refused(tmp_path: Path) -> None:
    folder = write_cause(tmp_path / "made_up")
    (folder / "zh.md").unlink()
    assert list(problems_of(folder)) == ["no page in zh"]


def test_a_missing_section_is_refused(tmp_path: Path) -> None:
    folder = write_cause(tmp_path / "made_up")
    page = folder / "en.md"
    page.write_text(page.read_text("utf-8").replace("## Why\n", ""), "utf-8")
    assert any("the sections are" in problem for problem in problems_of(folder))


def test_an_example_that_is_another_program_in_chinese_is_refused(tmp_path: Path) -> None:
    folder = write_cause(tmp_path / "made_up")
    page = folder / "zh.md"
    page.write_text(page.read_text("utf-8").replace("assert True", "assert 1"), "utf-8")
    assert list(problems_of(folder)) == ["the examples are other programs in zh"]


def test_a_key_that_only_one_cause_needs_is_asked_of_it(tmp_path: Path) -> None:
    problems = list(problems_of(write_cause(tmp_path / "unused")))
    assert "en: no help.never-called" in problems and "zh: no help.never-called" in problems


# One process a framework: importing it takes longer than all of its examples.
RUNNER = """
import json, runpy, sys, traceback
outcomes = {}
for path in sys.argv[2:]:
    try:
        runpy.run_path(path, run_name="__main__")
        outcomes[path] = ""
    except BaseException:
        outcomes[path] = traceback.format_exc()
json.dump(outcomes, open(sys.argv[1], "w"))
"""


def run_examples(framework: str, examples: dict[str, str], folder: Path) -> dict[str, str]:
    """What each program, by its name, ended with: nothing, or a traceback."""
    paths = {name: folder / f"{name}.py" for name in examples}
    for name, path in paths.items():
        path.write_text(examples[name], "utf-8")
    result = folder / "outcomes.json"
    command = [sys.executable, "-c", RUNNER, str(result), *map(str, paths.values())]
    quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=quiet, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert result.is_file(), f"{framework}: the runner ended with {done.returncode}\n{done.stderr[-4000:]}"
    outcomes = json.loads(result.read_text())
    return {name: outcomes[str(path)] for name, path in paths.items()}


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_examples_do_what_the_pages_say(framework: str, tmp_path: Path) -> None:
    examples = {
        f"{slug}_{number}_{example.verdict}": example.code
        for slug in REQUIRED
        for number, example in enumerate(examples_of(english(slug)))
        if example.framework == framework
    }
    assert len(examples) > 30
    outcomes = run_examples(framework, examples, tmp_path)
    assert {name: problem for name, problem in outcomes.items() if problem} == {}


def test_an_example_that_does_not_keep_its_claim_is_found(tmp_path: Path) -> None:
    ended = run_examples("none", {"kept": "assert True", "broken": "assert 1 + 1 == 3"}, tmp_path)
    assert ended["kept"] == "" and "AssertionError" in ended["broken"]
