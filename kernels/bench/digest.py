"""A digest of code alone: prose may change under it, a changed statement may not.

Comments and docstrings are cut out by their position in the text. Hashing tokens instead would
tie the digest to the Python that reads the file, since 3.12 splits f-strings into more of them.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from sitebuild.labs import ROOT, source_files

DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Place = tuple[int, int]  # line from 1, byte in the line from 0


def source_digest(module: str) -> str:
    """Return the SHA-256 of the code of `module` and of all project modules it imports.

    Parameters
    ----------
    module : dotted name of a module of this repository, such as `"kernels.softmax"`.
    """
    digest = hashlib.sha256()
    for path in source_files(module):
        code = code_of(path.read_text("utf-8")).encode()
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        digest.update(f"{name} {len(code)}\n".encode() + code)
    return digest.hexdigest()


@lru_cache
def code_of(text: str) -> str:
    """Return `text` without comments, docstrings, blank lines and spaces at line ends.

    Lines inside a string that is not a docstring stay as they are.
    """
    tree = ast.parse(text)
    lines = [line.encode() for line in text.splitlines()]
    kept_whole = {n for first, last in _strings(tree) for n in range(first, last)}
    cuts = [*_docstrings(tree), *_comments(text)]
    for (first, start), (last, end) in sorted(cuts, reverse=True):
        tail = lines[last - 1][end:]
        lines[first - 1] = lines[first - 1][:start] + tail
        for line in range(first + 1, last + 1):
            lines[line - 1] = b""
    numbered = enumerate(lines, 1)
    stripped = ((n, line if n in kept_whole else line.rstrip()) for n, line in numbered)
    inside = {n + 1 for n in kept_whole}
    return "".join(f"{line.decode()}\n" for n, line in stripped if line or n in inside)


def _docstrings(tree: ast.AST) -> Iterator[tuple[Place, Place]]:
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and _is_text(first.value):
                yield _span(first)


def _comments(text: str) -> Iterator[tuple[Place, Place]]:
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            start = len(lines[row - 1][:column].encode())
            yield (row, start), (row, len(lines[row - 1].encode()))


def _strings(node: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last line of each string, docstrings left out; an f-string counts as a whole."""
    if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
        children = [child for child in ast.iter_child_nodes(node) if child is not node.body[0]]
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        if isinstance(child, ast.Constant) and isinstance(child.value, (str, bytes)):
            yield child.lineno, child.end_lineno or child.lineno
        elif type(child).__name__ in ("JoinedStr", "TemplateStr"):
            (first, _), (last, _) = _span(child)
            yield first, last
        else:
            yield from _strings(child)


def _span(node: ast.AST) -> tuple[Place, Place]:
    at: Any = node
    return (at.lineno, at.col_offset), (at.end_lineno, at.end_col_offset)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def main() -> None:
    for path in sorted((ROOT / "kernels").glob("*.py")):
        print(f"{path.stem:28} {source_digest(f'kernels.{Path(path).stem}')}")


if __name__ == "__main__":
    main()
