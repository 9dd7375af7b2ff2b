"""The command `gradwhy`: its sub-commands, each imported only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

import rich_click as click

from gradwhy.version import __version__

# The order in which `gradwhy --help` lists them.
_COMMANDS = ("run", "report", "explain", "causes")


class _Commands(click.RichGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gradwhy.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and (args[0].endswith(".py") or os.path.isfile(args[0])):
            raise click.UsageError(f"no such command: {args[0]}; to run a program: gradwhy run {args[0]}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="gradwhy", message="%(prog)s %(version)s")
@click.pass_context
def gradwhy(ctx: click.Context) -> None:
    """Why does this gradient not arrive, and what do I change? For TensorFlow, PyTorch and JAX."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give back its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        outcome: int | Callable[[], int] | None = gradwhy.main(
            args=given, prog_name="gradwhy", standalone_mode=False, windows_expand_args=False
        )
    except click.ClickException as wrong:
        return _refuse(wrong)
    except click.Abort:
        return 130
    # The user's program runs here, outside of click: not one of its frames, handlers or contexts is around it.
    return outcome() if callable(outcome) else outcome or 0


def _refuse(wrong: click.ClickException) -> int:
    """Say in one line what is wrong with what was asked for."""
    message = wrong.format_message().strip()
    if isinstance(wrong, click.UsageError):
        message = message[:1].lower() + message[1:].rstrip(".")
        if wrong.ctx is not None:
            message += f" (see `{wrong.ctx.command_path} --help`)"
    click.echo(f"gradwhy: {message}", err=True)
    return wrong.exit_code
