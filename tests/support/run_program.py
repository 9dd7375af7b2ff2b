"""`python run_program.py [-m] TARGET ARGUMENTS`: what `gradwhy run` does, without a session."""

import os
import sys

from gradwhy.running.program import Program, leave, run, wind_down

if __name__ == "__main__":
    given = sys.argv[1:]
    is_module = given[0] == "-m"
    target, *arguments = given[1:] if is_module else given
    outcome = run(Program(target, tuple(arguments), is_module=is_module))
    wind_down()
    # The program may have closed `sys.stderr`.
    os.write(2, f"[ended {outcome.status} {type(outcome.problem).__name__} {outcome.has_started}]\n".encode())
    sys.exit(leave(outcome))
