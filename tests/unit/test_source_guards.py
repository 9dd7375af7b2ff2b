"""Which programs drop a missing gradient by themselves, and which read it."""

from __future__ import annotations

import textwrap

import pytest

from gradwhy.flow import Span
from gradwhy.source.statements import drops_none
from source_texts import given, span

ASKED = "tape.gradient(loss, variables)"

FILTERS = {
    "generator for the optimizer": """
        grads = tape.gradient(loss, variables)
        opt.apply_gradients((g, v) for g, v in zip(grads, variables) if g is not None)
    """,
    "list for the optimizer, skipped ones collected and shown": """
        pairs = list(zip(tape.gradient(loss, variables), variables))
        skipped = [v.path for g, v in pairs if g is None]
        optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])
        print(f"step {task}: skipped {skipped}")
    """,
    "all in one statement": """
        opt.apply_gradients((g, v) for g, v in zip(tape.gradient(loss, variables), variables) if g is not None)
    """,
    "continue in the loop": """
        grads = tape.gradient(loss, variables)
        for 梯度, v in zip(grads, variables):
            if 梯度 is None:
                continue
            v.assign_sub(rate * 梯度)
    """,
    "continue after a word about it": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is None:
                print("skipping", v.name)
                continue
            v.assign_sub(rate * g)
    """,
    "positive guard in the loop": """
        grads = tape.gradient(loss, variables)
        for i, (g, v) in enumerate(zip(grads, variables)):
            if g is not None:
                opt.update_step(g, v, rate)
    """,
    "appended to a list": """
        grads = tape.gradient(loss, variables)
        kept = []
        for g, v in zip(grads, variables):
            if g is not None:
                kept.append((tf.clip_by_norm(g, 1.0), v))
        opt.apply_gradients(kept)
    """,
    "else branch": """
        grads = tape.gradient(loss, variables)
        for g, v in zip(grads, variables):
            if g is None:
                missing += 1
            else:
                v.assign(v - rate * g)
    """,
    "zeros in its stead, in a comprehension": """
        grads = tape.gradient(loss, variables)
        grads = [g if g is not None else tf.zeros_like(v) for g, v in zip(grads, variables)]
        opt.apply_gradients(zip(grads, variables))
    """,
    "zeros in its stead, in a branch": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is None:
                g = tf.zeros_like(v)
            total.append(g)
    """,
    "inner step of meta-learning": """
        grads = tape.gradient(loss, variables)
        fast = [w if g is None else w - 0.1 * g for w, g in zip(variables, grads)]
        out = forward(x, fast)
        print(out)
    """,
    "names kept for later": """
        grads = tape.gradient(loss, variables)
        valid = [(g, v) for g, v in zip(grads, variables) if g is not None]
        print(f"{len(valid)} of {len(grads)} variables have a gradient")
        opt.apply_gradients(valid)
    """,
    "how many there are is shown first": """
        grads = tape.gradient(loss, variables)
        print("applied", sum(g is not None for g in grads))
        opt.apply_gradients([(g, v) for g, v in zip(grads, variables) if g is not None])
    """,
    "clipping by the global norm lets None pass": """
        grads = tape.gradient(loss, variables)
        grads, norm = tf.clip_by_global_norm(grads, 5.0)
        opt.apply_gradients((g, v) for g, v in zip(grads, variables) if g is not None)
    """,
    "clipping that keeps None": """
        grads = tape.gradient(loss, variables)
        grads = [tf.clip_by_norm(g, 1.0) if g is not None else None for g in grads]
        opt.apply_gradients([(g, v) for g, v in zip(grads, variables) if g is not None])
    """,
    "filter with a lambda": """
        pairs = zip(tape.gradient(loss, variables), variables)
        opt.apply_gradients(filter(lambda pair: pair[0] is not None, pairs))
    """,
    "index into the pair": """
        pairs = list(zip(tape.gradient(loss, variables), variables))
        opt.apply_gradients([pair for pair in pairs if pair[0] is not None])
    """,
    "index into the list": """
        grads = tape.gradient(loss, variables)
        for i in range(len(grads)):
            if grads[i] is None:
                continue
            variables[i].assign_sub(rate * grads[i])
    """,
    "a dict of gradients": """
        grads = tape.gradient(loss, variables)
        kept = {name: g for name, g in grads.items() if g is not None}
        state = update(state, kept)
    """,
    "one gradient, guarded": """
        grad = tape.gradient(loss, variables)
        if grad is not None:
            image = image + eps * tf.sign(grad)
    """,
    "one gradient, walrus": """
        if (grad := tape.gradient(loss, variables)) is not None:
            w.assign_sub(grad)
    """,
    "one gradient, early return": """
        def step(w):
            grad = tape.gradient(loss, variables)
            if grad is None:
                return w
            return w - rate * grad
    """,
    "substitute returned": """
        def step(w):
            grad = tape.gradient(loss, variables)
            return w if grad is None else w - rate * grad
    """,
    "a step without all gradients is skipped": """
        for x in batches:
            grads = tape.gradient(loss, variables)
            if any(g is None for g in grads):
                continue
            opt.apply_gradients(zip(grads, variables))
    """,
    "all of them, positively": """
        grads = tape.gradient(loss, variables)
        if all(g is not None for g in grads):
            opt.apply_gradients(zip(grads, variables))
    """,
    "asked in a block, filtered behind it": """
        with strategy.scope():
            grads = tape.gradient(loss, variables)
        opt.apply_gradients([(g, v) for g, v in zip(grads, variables) if g is not None])
    """,
    "norms of those that are there first": """
        grads = tape.gradient(loss, variables)
        norm = tf.linalg.global_norm([g for g in grads if g is not None])
        opt.apply_gradients((g / norm, v) for g, v in zip(grads, variables) if g is not None)
    """,
    "unpacked": """
        dkernel, dbias = tape.gradient(loss, variables)
        if dbias is not None:
            bias.assign_sub(dbias)
    """,
    "with another condition": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is None or v.name in frozen:
                continue
            opt.apply(g, v)
    """,
    "truth of an element": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if not g:
                continue
            v.assign_sub(g)
    """,
    "collected over several questions": """
        for loss in losses:
            everything.extend(zip(tape.gradient(loss, variables), variables))
        opt.apply_gradients([(g, v) for g, v in everything if g is not None])
    """,
    "in an attribute": """
        self.grads = tape.gradient(loss, variables)
        self.opt.apply_gradients((g, v) for g, v in zip(self.grads, self.variables) if g is not None)
    """,
    "accumulated": """
        for total, g in zip(totals, tape.gradient(loss, variables)):
            if g is not None:
                total.assign_add(g)
    """,
    "map_structure": """
        grads = tape.gradient(loss, variables)
        grads = tf.nest.map_structure(lambda g: g if g is not None else 0.0, grads)
        opt.apply_gradients(zip(grads, variables))
    """,
}

READS = {
    "printed as None": """
        grads = tape.gradient(loss, variables)
        for v, g in zip(variables, grads):
            print(v.name, None if g is None else float(tf.norm(g)))
    """,
    "printed as None in an f-string": """
        grads = tape.gradient(loss, variables)
        text = ["None" if g is None else f"{float(tf.norm(g)):.4f}" for g in grads]
        print("main", *text)
    """,
    "unpacked, then printed": """
        (dkernel, dbias), dx = tape.gradient(loss, variables)
        for name, g in [("kernel", dkernel), ("bias", dbias), ("x", dx)]:
            print(name, None if g is None else float(tf.norm(g)))
    """,
    "printed first, then guarded": """
        def fgsm(images):
            grad = tape.gradient(loss, variables)
            print("images", None if grad is None else float(tf.norm(grad)))
            return images if grad is None else images + eps * tf.sign(grad)
    """,
    "the method of a None that may be": """
        row = tape.gradient(loss, variables)
        print("row", row if row is None else row.numpy())
    """,
    "used as it is": """
        gradient = tape.gradient(loss, variables)
        saliency = tf.reduce_max(tf.abs(gradient), axis=[0, 2, 3])
        print("saliency", saliency.shape)
    """,
    "applied as it is": """
        grads = tape.gradient(loss, variables)
        opt.apply_gradients(zip(grads, variables))
    """,
    "applied as it is, counted afterwards": """
        grads = tape.gradient(loss, variables)
        opt.apply_gradients(zip(grads, variables))
        print("applied", sum(g is not None for g in grads))
    """,
    "applied in the same statement": """
        opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
    """,
    "norms of those that are there, then applied as it is": """
        grads = tape.gradient(loss, variables)
        norms = [float(tf.norm(g)) for g in grads if g is not None]
        print(norms)
        opt.apply_gradients(zip(grads, variables))
    """,
    "guarded only for the log": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is not None:
                print(v.name, float(tf.norm(g)))
    """,
    "guarded only for the summary": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is not None:
                tf.summary.histogram(v.name, g)
    """,
    "taken for an error": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is None:
                raise ValueError(f"no gradient for {v.name}")
            v.assign_sub(g)
    """,
    "asserted": """
        grads = tape.gradient(loss, variables)
        assert all(g is not None for g in grads)
        opt.apply_gradients(zip(grads, variables))
    """,
    "asserted one by one": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            assert g is not None, v.name
            v.assign_sub(g)
    """,
    "used before the guard": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            v.assign_sub(rate * g)
            if g is None:
                continue
    """,
    "a word about it and nothing else": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is None:
                print("no gradient for", v.name)
            v.assign_sub(rate * g)
    """,
    "only bound": """
        grads = tape.gradient(loss, variables)
    """,
    "bound anew before the guard": """
        grads = tape.gradient(loss, variables)
        grads = other()
        opt.apply_gradients((g, v) for g, v in zip(grads, variables) if g is not None)
    """,
    "an empty list is asked for": """
        grads = tape.gradient(loss, variables)
        if grads:
            opt.apply_gradients(zip(grads, variables))
    """,
    "another value is guarded": """
        grads = tape.gradient(loss, variables)
        opt.apply_gradients((g, v) for g, v in zip(grads, variables) if v is not None)
    """,
    "returned": """
        def grads_of(model):
            return loss, tape.gradient(loss, variables)
    """,
    "caught in a function": """
        grads = tape.gradient(loss, variables)
        def apply():
            opt.apply_gradients(zip(grads, variables))
        strategy.run(apply)
    """,
    "made smaller for the log only": """
        for g, v in zip(tape.gradient(loss, variables), variables):
            if g is not None:
                size = tf.abs(g)
                print(v.name, size, describe(g))
    """,
    "clipped where they are there, then applied as it is": """
        grads = tape.gradient(loss, variables)
        grads = [tf.clip_by_norm(g, 1.0) if g is not None else None for g in grads]
        opt.apply_gradients(zip(grads, variables))
    """,
    "asserted, then filtered all the same": """
        grads = tape.gradient(loss, variables)
        assert all(g is not None for g in grads)
        opt.apply_gradients((g, v) for g, v in zip(grads, variables) if g is not None)
    """,
    "zeros in the log": """
        grads = tape.gradient(loss, variables)
        print([0.0 if g is None else float(tf.norm(g)) for g in grads])
    """,
}


@pytest.mark.parametrize("text", FILTERS.values(), ids=FILTERS.keys())
def test_filter_is_seen(text: str) -> None:
    text = textwrap.dedent(text)
    given(text)
    assert drops_none(span(text, ASKED))


@pytest.mark.parametrize("text", READS.values(), ids=READS.keys())
def test_reading_is_no_filter(text: str) -> None:
    text = textwrap.dedent(text)
    given(text)
    assert not drops_none(span(text, ASKED))


@pytest.mark.parametrize("text", [*FILTERS.values(), *READS.values()], ids=[*FILTERS, *READS])
def test_line_alone_is_enough_to_find_the_question(text: str) -> None:
    text = textwrap.dedent(text)
    given(text)
    whole = span(text, ASKED)
    assert drops_none(Span(whole.file, whole.line)) is drops_none(whole)


def test_answer_is_followed_to_the_caller() -> None:
    text = textwrap.dedent("""
        def grads_of(model, x):
            with tf.GradientTape() as tape:
                loss = f(model(x))
            return loss, tape.gradient(loss, variables)

        def train(model):
            loss, grads = grads_of(model, x)
            print(float(loss))
            opt.apply_gradients((g, v) for g, v in zip(grads, variables) if g is not None)
    """)
    given(text)
    question, caller = span(text, ASKED), span(text, "grads_of(model, x)", nth=1)
    assert not drops_none(question)
    assert drops_none(question, [caller])


def test_read_of_an_attribute_is_followed_by_its_text() -> None:
    text = textwrap.dedent("""
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(scale)
    """)
    given(text)
    assert drops_none(span(text, "p.grad"))


def test_nothing_is_said_of_a_file_that_cannot_be_read() -> None:
    assert not drops_none(Span("absent.py", 3, 1, 3, 9))


def test_nothing_is_said_of_a_text_that_is_not_python() -> None:
    given("tape.gradient(loss, variables")
    assert not drops_none(Span("given.py", 1, 1, 1, 20))
