"""Time the site's build cold, warm and with execution off, side by side in one run.

The three take turns, so that a change of the machine's speed meets all of them. The labs' and
notebooks' own run time is what their processes take when they are started one after another.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from sitebuild.labs import ROOT
from sitebuild.notebooks import notebooks

ROUNDS = 5
CACHE = ROOT / ".cache"
RUN = re.compile(r'print\(run\("([\w.]+)"\)\)')


def build(config: str) -> float:
    """Seconds of one build in a process of its own, from a configuration given as text."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "mkdocs", "build", "-f", "-", "-d", out]
        start = time.perf_counter()
        subprocess.run(command, input=config.encode(), cwd=ROOT, check=True, capture_output=True)
        return time.perf_counter() - start


def own_time() -> float:
    """Seconds that the labs, figures and notebooks of all pages take by themselves."""
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    commands = [["-m", module] for module in dict.fromkeys(RUN.findall(pages))]
    execute = "import nbclient, jupytext, sys; nbclient.execute(jupytext.read(sys.argv[1]))"
    commands += [["-c", execute, str(notebook)] for notebook in notebooks()]
    start = time.perf_counter()
    for command in commands:
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    off = config.replace("  - markdown-exec:\n", "  - markdown-exec:\n      enabled: false\n")
    off = off.replace("execute: true", "execute: false").replace("cache: true", "cache: false")
    times: dict[str, list[float]] = {"execution off": [], "cold": [], "warm": [], "own": []}
    for _ in range(ROUNDS):
        times["execution off"].append(build(off))
        shutil.rmtree(CACHE / "labs", ignore_errors=True)
        shutil.rmtree(CACHE / "mkdocs-jupyter", ignore_errors=True)
        times["cold"].append(build(config))
        times["warm"].append(build(config))
        times["own"].append(own_time())
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:14} {median[name]:6.2f} s   {min(values):.2f} to {max(values):.2f}")
    floor = median["execution off"] + median["own"]
    print(f"cold / (execution off + own run time)  {median['cold'] / floor:.2f}")
    print(f"warm / execution off                   {median['warm'] / median['execution off']:.2f}")


if __name__ == "__main__":
    main()
