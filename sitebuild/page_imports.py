"""While the site is served, have pages import the project's code anew once it has changed.

Labs run in processes of their own. Tables and the explorer are computed in the server's process,
which would go on with the modules that it has.
"""

import sys

from sitebuild.labs import PACKAGES

of_the_build: frozenset[str] = frozenset()  # what must not be loaded twice: it remembers things


def begin() -> None:
    """Whatever is imported from here on is imported by pages."""
    global of_the_build
    of_the_build = frozenset(sys.modules)


def forget() -> None:
    """Drop the project's modules that pages have imported."""
    for name in sys.modules.keys() - of_the_build:
        package, _, child = name.rpartition(".")
        if name.split(".")[0] in PACKAGES:
            del sys.modules[name]
            if package in sys.modules:  # `from package import child` asks the package first
                vars(sys.modules[package]).pop(child, None)
