"""Fixes for who keeps track: the tape that recorded is asked, and a layer's variable is one that Keras knows."""

from __future__ import annotations

import ast

from gradwhy.fix.situation import NoFixError, Proposal, Situation, asking_call, definition, proposed
from gradwhy.flow import Applicability, Scope, ScopeRole, Span, Text
from gradwhy.source.statements import dotted, last_name, names_of_module

_KNOWN = frozenset({"name", "trainable", "dtype"})


def ask_recording_tape(situation: Situation) -> Proposal:
    """`d_tape.gradient(g_loss, ...)` asks the tape under which all of the path ran."""
    own = situation.recording
    parsed, asking = asking_call(situation)
    _check_line(asking, situation.question.span)
    called = asking.func
    if own is None or not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        raise NoFixError("the tape is not called by a name")
    if own.name != called.value.id:
        raise NoFixError("the tape has another name here")
    ops = situation.ops_between()
    others = [scope for scope in situation.graph.scopes if _can_answer(scope, own)]
    holding = [scope for scope in others if ops and all(scope.id in op.scopes for op in ops)]
    names = {scope.name for scope in holding}
    if len(names) != 1:
        raise NoFixError("not one other tape recorded it all")
    name = names.pop()
    editor = parsed.editor()
    parsed.replace(editor, called.value, name)
    title = Text("fixes/ask-recording", {"name": name, "target": situation.question.target})
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def track_variable(situation: Situation) -> Proposal:
    """`self.scale = tf.Variable(...)` of a Keras layer becomes a `keras.Variable`, which the layer keeps track of."""
    parsed, call = definition(situation)
    _check_line(call, situation.asked[0].definition)
    way = parsed.way_to(call)
    holder = next((part for part in reversed(way) if isinstance(part, ast.ClassDef)), None)
    statement = next(part for part in reversed(way) if isinstance(part, ast.stmt))
    is_own = (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and isinstance(statement.targets[0], ast.Attribute)
    )
    if holder is None or not is_own or last_name(call.func) != "Variable":
        raise NoFixError("no variable of a layer")
    if len(call.args) != 1 or not {keyword.arg for keyword in call.keywords} <= _KNOWN:
        raise NoFixError("it is made with more than a value")
    keras = _keras(parsed.tree, dotted(call.func) or "")
    editor = parsed.editor()
    parsed.replace(editor, call.func, f"{keras}.Variable")
    title = Text(
        "fixes/track", {"source": situation.finding.sources[0].name, "line": call.lineno, "code": f"{keras}.Variable"}
    )
    return proposed(title, Applicability.UNSAFE, editor, parsed)


def _can_answer(scope: Scope, own: Scope) -> bool:
    return scope.role is ScopeRole.RECORDS and scope.id != own.id and bool(scope.name) and scope.name != own.name


def _check_line(call: ast.Call, span: Span | None) -> None:
    """The call must begin where it was seen: one around it is another one."""
    if span is None or call.lineno != span.line:
        raise NoFixError("no call of its own")


def _keras(tree: ast.Module, made_by: str) -> str:
    """How the file calls Keras: by its import, else through TensorFlow's name for it."""
    imported = next(names_of_module(tree, "keras"), None)
    if imported is not None:
        return imported
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom) and part.module == "tensorflow":
            for alias in part.names:
                if alias.name == "keras":
                    return alias.asname or alias.name
    module = made_by.rpartition(".")[0]
    if not module:
        raise NoFixError("the file does not call Keras by a name")
    return f"{module}.keras"
