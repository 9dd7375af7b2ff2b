"""Reports written by hand, one for each thing that a rendering must get right."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from gradwhy.flow import (
    AskedQuestion,
    AskedSource,
    Cut,
    Finding,
    Label,
    Passage,
    Process,
    QuotedFile,
    Report,
    Severity,
    Source,
    Span,
    Status,
    Step,
    Text,
)

MASK = """\
import tensorflow as tf
x = tf.Variable([[1., 2., 3.]])
mask = tf.constant([0., 1., 0.], shape=(3, 1))
x_ = x @ mask
with tf.GradientTape() as tape:
    y = layer(x_)
    loss = tf.reduce_mean(y ** 2)
grads = tape.gradient(loss, [layer.trainable_variables, x])
"""

TRAIN = """\
from helpers import prepare

inputs = prepare(
    embedding,
    tokens,
    scale=2.0,
)
for step in range(1000):
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss = loss_function(labels, logits)
    gradients = tape.gradient(loss, model.trainable_variables + [embedding])
"""

HELPERS = """\
def prepare(embedding, tokens, scale):
    gathered = tf.gather(embedding, tokens)
    return gathered * scale
"""

CHINESE = """\
权重 = tf.Variable([1.0, 2.0], name="权重")  # 需要训练的权重
\t类别 = tf.argmax(tf.stack(['猫', '狗'] * 权重), axis=0); 损失 = tf.reduce_mean(tf.cast(类别, tf.float32))
\x1b[31m = '\u202egnp.exe'
"""

LONG = "total = " + " + ".join(f"weights[{i}]" for i in range(40)) + " + scale.detach() * " + "factor * " * 40 + "1.0\n"


def quoted(text: str, *lines: int) -> QuotedFile:
    """A file's quoted lines, all of them if none is named."""
    every = dict(enumerate(text.split("\n"), 1))
    shown = {str(n): every[n] for n in lines or every}
    return QuotedFile(hashlib.sha256(text.encode()).hexdigest(), shown)


def source(name: str, shape: tuple[int | None, ...] = (3,)) -> Source:
    return Source(name, (), "Variable", shape)


def asked(*names: str, status: Status = Status.NONE, times: int = 1, target: str = "loss") -> AskedQuestion:
    """A question about those sources, each of which got `status` every time."""
    sources = tuple(AskedSource(n, (), "Variable", (3,), status, {status.value: times}) for n in names)
    return AskedQuestion(0, "tape.gradient", "tensorflow", Span("train.py", 8, 9, 8, 60), target, times, sources)


def report(finding: Finding, question: AskedQuestion, **files: QuotedFile) -> Report:
    return Report(
        gradwhy="0.1.0",
        python="3.11.7",
        program="train.py",
        frameworks={"tensorflow": "2.21.0"},
        exit_status=0,
        questions=(question,),
        findings=(finding,),
        files={f"{name}.py": file for name, file in files.items()},
    )


def common(*names: str, target: str = "loss") -> dict[str, str | int | float]:
    """The values that every text of a finding has."""
    shown = ", ".join(f"`{n}`" for n in names[:3])
    return {"sources": shown, "source": names[0], "count": len(names), "more": max(0, len(names) - 3), "target": target}


def span(file: str, text: str, line: int, words: str) -> Span:
    """Where the words stand in that line of a file, the first time."""
    column = text.split("\n")[line - 1].index(words) + 1
    return Span(file, line, column, line, column + len(words))


def said(words: str) -> Text:
    """A text that no catalogue knows, which is shown in the words that it was saved with."""
    return Text("sample/labels/words", {}, words)


def mask_finding() -> Finding:
    """The finding that the style guide shows."""
    values = common("x")
    cut = Span("train.py", 4, 6, 4, 14)
    return Finding(
        id=0,
        question=0,
        cause="outside-tape",
        severity=Severity.ERROR,
        symptom=Status.NONE,
        sources=(source("x", (1, 3)),),
        target="loss",
        times=1,
        place=cut,
        headline=Text("headline/none", values),
        labels=(
            Label(cut, Text("outside-tape/labels/cut", values)),
            Label(Span("train.py", 5, 6, 5, 23), Text("labels/recording-starts", values)),
            Label(Span("train.py", 6, 15, 6, 17), Text("labels/enters", values | {"name": "x_"})),
            Label(Span("train.py", 7, 5, 7, 9), Text("labels/target", values)),
        ),
        help=Text("outside-tape/help/move", values | {"line": 4}),
        cuts=(Cut("outside-tape", cut, "MatMul"),),
        path=(
            Step("Variable", Span("train.py", 2, 5, 2, 32), "x"),
            Step("MatMul", cut, None, Passage.CUT),
            Step("Dense", Span("train.py", 6, 9, 6, 18)),
            Step("Pow", Span("train.py", 7, 27, 7, 33)),
            Step("Mean", Span("train.py", 7, 12, 7, 34), "loss"),
        ),
    )


def mask_report() -> Report:
    return report(mask_finding(), asked("layer.kernel", "x"), train=quoted(MASK))


def call_report() -> Report:
    """The cut is in another file, its call spans several lines, and the path is long."""
    values = common("embedding")
    cut = Span("helpers.py", 2, 16, 2, 44)
    steps = [
        Step("Variable", None, "embedding"),
        Step("GatherV2", cut, None, Passage.CUT),
        Step("Mul", Span("helpers.py", 3, 12)),
    ]
    steps += [Step(f"Block{i}", Span("train.py", 10, 18, 10, 46)) for i in range(12)]
    finding = replace(
        mask_finding(),
        severity=Severity.WARNING,
        sources=(source("embedding"),),
        times=198,
        place=cut,
        headline=Text("headline/none", values),
        labels=(
            Label(cut, said("ran before the tape started recording")),
            Label(Span("train.py", 3, 10, 7, 2), Text("labels/called-here", values)),
            Label(Span("train.py", 9, 10, 9, 27), Text("labels/recording-starts", values)),
            Label(Span("train.py", 11, 9, 11, 13), Text("labels/target", values)),
        ),
        notes=(
            Text("notes/also-cut", values | {"count": 2}),
            Text("outside-tape/notes/cached", values | {"name": "inputs"}),
        ),
        help=Text("outside-tape/help/call", values | {"function": "prepare", "line": 3}),
        path=(*steps, Step("Mean", Span("train.py", 11, 16, 11, 45), "loss")),
    )
    question = asked("embedding", times=200)
    first_wrong = replace(question.sources[0], outcomes={"ok": 2, "none": 198}, first_wrong=3)
    return report(finding, replace(question, sources=(first_wrong,)), train=quoted(TRAIN), helpers=quoted(HELPERS))


def chinese_report() -> Report:
    """Wide characters and tabs before the spans, an escape sequence and a bidirectional override in the source."""
    values = common("权重", target="损失")
    cut = span("train.py", CHINESE, 2, "tf.argmax(tf.stack(['猫', '狗'] * 权重), axis=0)")
    finding = replace(
        mask_finding(),
        cause="non-differentiable-op",
        sources=(source("权重"),),
        target="损失",
        place=cut,
        headline=Text("headline/none", values),
        labels=(
            Label(cut, said("`tf.argmax` 不可导")),
            Label(span("train.py", CHINESE, 2, "损失"), Text("labels/target", values)),
            Label(span("train.py", CHINESE, 1, "权重"), Text("labels/defined", values | {"name": "权重"})),
            Label(
                span("train.py", CHINESE, 3, "'\u202egnp.exe'"),
                Text("labels/defined", values | {"name": "\x1b[31m\u202e"}),
            ),
        ),
        help=said("把第 2 行的 `tf.argmax` 换成平滑函数，或用直通写法：`x + stop_gradient(hard(x) - x)`"),
        path=(
            Step("Variable", None, "权重"),
            Step("tf.argmax", cut, None, Passage.CUT),
            Step("Cast", span("train.py", CHINESE, 2, "tf.cast(类别, tf.float32)")),
            Step("Mean", None, "损失"),
        ),
    )
    return report(finding, asked("权重", target="损失"), train=quoted(CHINESE))


def long_report() -> Report:
    """A line that fits no terminal, and more sources than a headline can name."""
    names = [f"model.encoder.layers[{i}].attention.query_projection.kernel" for i in range(7)]
    values = common(*names)
    start = LONG.index("scale.detach()") + 1
    cut = Span("train.py", 1, start, 1, start + len("scale.detach()"))
    finding = replace(
        mask_finding(),
        cause="detached",
        severity=Severity.WARNING,
        sources=tuple(source(n) for n in names),
        place=cut,
        headline=Text("headline/none-many", values),
        labels=(
            Label(cut, said("`detach` stops the gradient here")),
            Label(Span("train.py", 1, 1, 1, 6), Text("labels/target", values)),
        ),
        help=said("remove `detach` at line 1 (unsafe: what lies before it starts to get gradients)"),
        path=(),
    )
    return report(finding, asked(*names), train=quoted(LONG))


def unreadable_report() -> Report:
    """The file is gone, and nothing of it was quoted; another rank saw it."""
    finding = replace(mask_finding(), path=())
    return replace(report(finding, asked("x")), process=Process(rank=1, pid=4242))


def quiet_report() -> Report:
    """No gradient was asked for."""
    return Report(gradwhy="0.1.0", python="3.11.7", program="train.py", frameworks={"torch": "2.13.0"}, exit_status=0)


SAMPLES = {
    "mask": mask_report,
    "call": call_report,
    "chinese": chinese_report,
    "long": long_report,
    "unreadable": unreadable_report,
    "quiet": quiet_report,
}
