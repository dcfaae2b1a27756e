"""Hold a reader's answer against the cases of an exercise, and say what is wrong with it.

What it says names the input, what came and what was expected: a bare "wrong" teaches nothing.
"""

import copy
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

WIDTH = 300  # characters of a value that a complaint shows


class Case(NamedTuple):
    """One thing that must come out of an answer."""

    shown: str  # the input, as a reader would write it
    run: Callable[[Any], object]  # what comes out, given the answer as a module
    expected: object
    why: str = ""  # what a wrong result here says about the answer


def call(signature: str, arguments: Sequence[object], gives: object, why: str = "") -> Case:
    """Return the case of one function call.

    `signature` is written like `"merge(a, b)"`, so that a complaint names each argument. The
    function gets copies, which it may change.
    """
    name, _, names = signature.removesuffix(")").partition("(")
    pairs = zip(names.split(", "), arguments, strict=False)  # what has a default may be left out
    shown = ", ".join(f"{parameter}={show(value)}" for parameter, value in pairs)

    def run(answer: Any) -> object:
        return getattr(answer, name)(*copy.deepcopy(arguments))

    return Case(f"{name}({shown})", run, gives, why)


def complaint(path: Path, cases: Iterable[Case]) -> str:
    """Return what is wrong with the answer in the file `path`, or nothing when all is right."""
    try:
        answer = _load(path)
    except (Exception, SystemExit) as error:
        return f"The answer cannot be read: {_described(error, path)}"
    every = list(cases)
    for number, case in enumerate(every, start=1):
        wanted, why = show(case.expected), case.why
        try:
            got = case.run(answer)
        except (Exception, SystemExit) as error:
            if isinstance(error, AttributeError) and error.obj is answer:
                return f"The answer has no {error.name}; keep the names that it began with."
            came = f"raised    {_described(error, path)}"
        else:
            if same(got, case.expected):
                continue
            short = show(got)
            if short == wanted:  # where they differ is cut away
                short, wanted = repr(got)[:WIDTH], repr(case.expected)[:WIDTH]
            came = f"gave      {short}"
            why = UNWRITTEN if got is None else why
        place = f"Check {number} of {len(every)}:\n\n{case.shown}"
        return f"{place}\n{came}\nexpected  {wanted}\n\n{why}".strip()
    return ""


UNWRITTEN = "Write what is missing in place of the dots, and return the result."


def grade(cases: Iterable[Case], path: str) -> None:
    """Print that the answer in the file `path` is right, or exit with what is wrong."""
    every = list(cases)
    if wrong := complaint(Path(path), every):
        sys.exit(wrong)
    print(f"Right: all {len(every)} checks pass.")


def main(cases: Iterable[Case]) -> None:
    """Grade the file that the command line names."""
    if len(sys.argv) != 2:
        stem = Path(sys.argv[0]).stem
        sys.exit(f"name the file with your answer: python -m snippets.practice.{stem} answer.py")
    grade(cases, sys.argv[1])


def same(got: object, expected: object) -> bool:
    """Equal, but lists may be tuples, and fractions need agree to nine digits only."""
    if isinstance(expected, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(expected)
            and all(map(same, got, expected))
        )
    if isinstance(expected, float) and isinstance(got, float | int):
        return got == expected or math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12)
    return got == expected


def show(value: object) -> str:
    """Return a value as Python writes it, with ten digits a number and long lists cut."""
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if set(short) & set(".en") else f"{short}.0"
    if isinstance(value, int):
        return f"{value}" if abs(value) < 10_000 else f"{value:_}"
    if isinstance(value, list | tuple):
        parts = [show(part) for part in value[:8]]
        if len(value) > len(parts):
            parts = [*parts[:3], "...", show(value[-1]) + f" ({len(value)} in all)"]
        left, right = "[]" if isinstance(value, list) else "()"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{left}{', '.join(parts)}{comma}{right}"
    return repr(value)[:WIDTH]


def _load(path: Path) -> ModuleType:
    # not an import: that would keep compiled code beside the file, and take it for a newer answer
    answer = ModuleType("answer")
    sys.modules["answer"] = answer  # a data class looks for its own module
    exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(answer))
    return answer


def _described(error: BaseException, path: Path) -> str:
    """Return kind and text of an error, and the last line of the answer that it passed."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, SyntaxError):
        return f"{kind} in line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    where = f" in line {lines[-1]} of your answer" if lines else ""
    return f"{kind}{where}: {text}" if text else f"{kind}{where}"
