"""Stagecraft from Python: what the commands print with --json, as dictionaries.

A scenario is the path of a file, YAML text (it has a line break, or begins with a brace) or a mapping; relative paths in a
text or mapping are relative to the working directory. `set` overrides keys of it, as --set does: {"parallelism.tensor": 4}.

Python's lock is released while a simulation runs, so threads are worth it; one sweep or search runs at a time.
"""
import json as _json
import os as _os
import threading as _threading
from collections.abc import Mapping as _Mapping

from stagecraft import _core

__all__ = ["ScenarioError", "InternalError", "simulate", "check", "memory", "goodput", "compare", "sweep", "search", "explain",
           "schedule", "__version__"]
__version__ = _core.__version__

_OUR_BUG = 3
_BY_SIGNAL = 128
_signals = _threading.Lock()  # sweeps and searches listen for Ctrl-C, of which there is one a process


class ScenarioError(ValueError):
    """The scenario, or what was asked of it, is wrong. `diagnostics` has all mistakes, each a dictionary with the keys code,
    file, line, column, path, message and hint; the text of the error is what the command line prints."""

    def __init__(self, diagnostics):
        super().__init__("\n".join(map(_rendered, diagnostics)))
        self.diagnostics = diagnostics

    def __reduce__(self):
        return ScenarioError, (self.diagnostics,)


class InternalError(RuntimeError):
    """A bug of ours. Please report it."""


def _rendered(diagnostic):
    place = diagnostic.get("file") or ""
    if diagnostic.get("line"):
        place += f":{diagnostic['line']}"
        if diagnostic.get("column"):
            place += f":{diagnostic['column']}"
    head = [place] if place else []
    head += [diagnostic.get("severity", "error")] + ([diagnostic["path"]] if diagnostic.get("path") else [])
    text = ": ".join([*head, diagnostic["message"]])
    return text + (f"\n  hint: {diagnostic['hint']}" if diagnostic.get("hint") else "")


def _plain(value):
    """What json does not know: numbers of numpy, paths."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, _os.PathLike):
        return _os.fspath(value)
    raise TypeError(f"{type(value).__name__} is nothing that a scenario holds")


def _yaml(value):
    """A value as YAML: a text stands as it is, as on the command line."""
    return value if isinstance(value, str) else _json.dumps(value, default=_plain)


class _Call:
    """The words of a command, and the texts that stand for files."""

    def __init__(self, command):
        self.command, self.words, self.texts = command, ["--json", "--quiet"], {}

    def source(self, source, name="<scenario>"):
        if isinstance(source, _Mapping):
            self.texts[name] = _json.dumps(source, default=_plain, indent=1)
        elif isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
            self.texts[name] = source
        elif isinstance(source, (str, _os.PathLike)):
            name = _os.fspath(source)
            if name.startswith("-"):
                raise ValueError(f"{name!r} is no path of a scenario; ./{name} may be")
        else:
            raise TypeError(f"a scenario is a path, YAML text or a mapping, not {type(source).__name__}")
        self.words.append(name)
        return self

    def option(self, name, value):
        if value is True:
            self.words.append(f"--{name}")
        elif value is not None and value is not False:
            self.words += [f"--{name}", str(value)]
        return self

    def overrides(self, overrides):
        for path, value in (overrides or {}).items():
            self.option("set", f"{path}={_yaml(value)}")
        return self

    def vary(self, vary):
        for path, values in (vary or {}).items():
            values = [values] if isinstance(values, str) else values
            self.option("vary", f"{path}={','.join(map(_yaml, values))}")
        return self

    def documents(self):
        code, out, err = _core.call(self.command, self.words, self.texts, __file__)
        if code == _OUR_BUG:
            raise InternalError(err or out)
        if code > _BY_SIGNAL:
            raise KeyboardInterrupt
        return [_json.loads(line) for line in out.splitlines()]

    def document(self):
        """The one document of a command about one scenario."""
        (document,) = self.documents()
        if document["schema"] == "stagecraft.error/1":
            raise ScenarioError(document["errors"])
        return document


def simulate(scenario, *, set=None, unfold=False, why=False):
    return _Call("run").source(scenario).overrides(set).option("unfold", unfold).option("why", why).document()


def check(scenario, *, set=None):
    return _Call("check").source(scenario).overrides(set).document()


def memory(scenario, *, set=None):
    return _Call("memory").source(scenario).overrides(set).document()


def goodput(scenario, *, set=None, seed=1, jobs=1, timeline=False, plan=False):
    call = _Call("goodput").source(scenario).overrides(set).option("seed", seed).option("jobs", jobs)
    return call.option("timeline", timeline).option("plan", plan).document()


def explain(scenario, path, *, set=None, depth=2, sensitivities=True):
    call = _Call("explain").source(scenario).overrides(set).option("depth", depth)
    call.words.append(path)
    return call.option("no-sensitivities", not sensitivities).document()


def compare(scenarios, *, vary=None, set=None, jobs=1):
    call = _Call("compare").overrides(set).vary(vary).option("jobs", jobs)
    if isinstance(scenarios, (str, _os.PathLike, _Mapping)):
        call.source(scenarios)
    else:
        for number, scenario in enumerate(scenarios, 1):
            call.source(scenario, f"<scenario {number}>")
    return _rows(call)


def sweep(sweep, *, set=None, seed=1, jobs=None, full=False):
    call = _Call("sweep").source(sweep, "<sweep>").overrides(set).option("seed", seed).option("jobs", jobs)
    call.option("full", full)
    with _signals:
        return _rows(call)


def search(scenario, *, set=None, vary=None, fix=(), gpus=None, top=10, exhaustive=False, price=None, jobs=None):
    call = _Call("search").source(scenario).overrides(set).vary(vary).option("gpus", gpus).option("top", top)
    for path in [fix] if isinstance(fix, str) else fix:
        call.option("fix", path)
    call.option("exhaustive", exhaustive).option("price", price).option("jobs", jobs)
    with _signals:
        return call.document()


def schedule(name, *, stages, micro_batches, **costs):
    call = _Call("schedule").option("schedule", name).option("stages", stages).option("micro-batches", micro_batches)
    call.words.insert(0, "show")
    for option, value in costs.items():
        call.option(option.replace("_", "-"), value)
    return call.document()


def _rows(call):
    """A row that could not run is a row; a call that gave no row at all was wrong."""
    rows = call.documents()
    wrong = [row for row in rows if row["schema"] == "stagecraft.error/1"]
    if wrong and len(wrong) == len(rows):
        raise ScenarioError([error for row in wrong for error in row["errors"]])
    return rows
