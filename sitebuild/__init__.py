"""What builds the site: lab runner, gate, TeX to MathML, reference links, figures."""

from sitebuild.labs import run

__all__ = ["run"]
