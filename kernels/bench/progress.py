"""One line that says what runs now, how much is done and how much is left."""

import sys
import time
from typing import TextIO

WIDTH = 20


class Progress:
    """A bar on a terminal, a line for each step elsewhere.

    Parameters
    ----------
    total : steps in all.
    done : steps that an earlier session finished.
    """

    def __init__(self, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        self.total, self.done, self.began = total, done, time.monotonic()
        self.first = done
        self.stream = sys.stderr if stream is None else stream

    def now(self, what: str) -> None:
        """Show the step that starts."""
        filled = WIDTH * self.done // self.total if self.total else WIDTH
        bar = "#" * filled + "-" * (WIDTH - filled)
        line = f"[{bar}] {self.done}/{self.total} {self._left()} {what}"
        terminal = self.stream.isatty()
        print(f"\r\033[K{line[:150]}" if terminal else line, end="" if terminal else "\n",
              file=self.stream, flush=True)  # fmt: skip

    def finished(self) -> None:
        """Count one step as done."""
        self.done += 1

    def end(self, message: str) -> None:
        """Leave the bar and print a last message below it."""
        print(f"\n{message}" if self.stream.isatty() else message, file=self.stream, flush=True)

    def _left(self) -> str:
        finished = self.done - self.first
        if not finished:
            return "time left unknown;"
        seconds = (time.monotonic() - self.began) / finished * (self.total - self.done)
        return f"about {seconds / 60:.0f} min left;"
