"""Stagecraft from Python: what the commands print with --json, as dictionaries.

A scenario is the path of a file, YAML text (it has a line break, or begins with a brace) or a mapping; relative paths in a
text or mapping are relative to the working directory. `set` overrides keys of it, as --set does: {"parallelism.tensor": 4}.

Python's lock is released while a simulation runs, so threads are worth it; one sweep or search runs at a time.
"""
import json as _json
import numbers as _numbers
import os as _os
import re as _re
import threading as _threading
from collections.abc import Iterable as _Iterable
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


_WORDS = _re.compile(r"(?!(?:[+-]?[.\d_]+(?:e[+-]?\d+)?|true|false|null)$)[\w./][\w./+-]*(?: [\w./+-]+)*", _re.ASCII | _re.IGNORECASE)


def _yaml(value):
    """A value as YAML. A text is in quotes where YAML would read a number, nothing or a part of it, so that it is the same text
    as in a scenario that is a mapping. Words stand as they are: they name the variants of `vary`."""
    if isinstance(value, str):
        return value if _WORDS.fullmatch(value) else _json.dumps(value, ensure_ascii=False)
    return _json.dumps(value, default=_plain)


def _wrong(name, wanted, value):
    return TypeError(f"{name} is {wanted}, not {type(value).__name__}")


def _paths(name, mapping):
    """The paths of scenarios in `set` and `vary`, with what they get."""
    if mapping is None:
        return
    if not isinstance(mapping, _Mapping):
        raise _wrong(name, "a mapping of paths to values", mapping)
    for path, value in mapping.items():
        if not isinstance(path, str):
            raise _wrong(f"a path of {name}", "a text", path)
        yield path, value


def _list(name, values):
    """Of a text alone that one."""
    if isinstance(values, str):
        return [values]
    if isinstance(values, _Mapping) or not isinstance(values, _Iterable):
        raise _wrong(name, "a list", values)
    return list(values)


def _truth(name, value):
    """As everywhere in Python; only a text is not taken: "no" would be a yes."""
    if isinstance(value, str):
        raise _wrong(name, "True or False", value)
    return bool(value)


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

    def flag(self, name, value):
        if _truth(name, value):
            self.words.append("--" + name.replace("_", "-"))
        return self

    def option(self, name, value, wanted="a text or a number", kinds=(str, _numbers.Real)):
        """True and False are no numbers here."""
        if value is None:
            return self
        value = value.item() if hasattr(value, "item") else value  # of numpy
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise _wrong(name, wanted, value)
        self.words += ["--" + name.replace("_", "-"), str(value)]
        return self

    def count(self, name, value):
        return self.option(name, value, "a whole number", int)

    def text(self, name, value):
        return self.option(name, value, "a text", str)

    def overrides(self, overrides):
        for path, value in _paths("set", overrides):
            self.text("set", f"{path}={_yaml(value)}")
        return self

    def vary(self, vary):
        for path, values in _paths("vary", vary):
            self.text("vary", f"{path}={','.join(map(_yaml, _list(f'vary of {path}', values)))}")
        return self

    def documents(self):
        for text in (*self.words, *self.texts.values()):
            text.encode()  # half a surrogate pair is a UnicodeEncodeError, not one of types
        code, out, err = _core.call(self.command, self.words, self.texts, __file__)
        if code == _OUR_BUG:
            raise InternalError(err or out)
        if code > _BY_SIGNAL:
            raise KeyboardInterrupt
        return [_json.loads(line) for line in out.splitlines()]

    def answers(self):
        """The documents of a command about one scenario."""
        documents = self.documents()
        if wrong := _error_documents(documents):
            raise ScenarioError(_mistakes(wrong))
        return documents

    def document(self):
        """The one document of such a command."""
        (document,) = self.answers()
        return document


def _error_documents(rows):
    return [row for row in rows if row["schema"] == "stagecraft.error/1"]


def _mistakes(documents):
    return [error for document in documents for error in document["errors"]]


def simulate(scenario, *, set=None, unfold=False, why=False):
    return _Call("run").source(scenario).overrides(set).flag("unfold", unfold).flag("why", why).document()


def check(scenario, *, set=None):
    return _Call("check").source(scenario).overrides(set).document()


def memory(scenario, *, set=None):
    return _Call("memory").source(scenario).overrides(set).document()


def goodput(scenario, *, set=None, seed=1, jobs=1, timeline=False, plan=False):
    call = _Call("goodput").source(scenario).overrides(set).count("seed", seed).count("jobs", jobs)
    return call.flag("timeline", timeline).flag("plan", plan).document()


def explain(scenario, path, *, set=None, depth=2, sensitivities=True):
    if not isinstance(path, str):
        raise _wrong("path", "a text", path)
    call = _Call("explain").source(scenario).overrides(set).count("depth", depth)
    call.words.append(path)
    figures = call.flag("no_sensitivities", not _truth("sensitivities", sensitivities)).answers()
    return figures if len(figures) > 1 else figures[0]


def compare(scenarios, *, vary=None, set=None, jobs=1):
    call = _Call("compare").overrides(set).vary(vary).count("jobs", jobs)
    if isinstance(scenarios, (str, _os.PathLike, _Mapping)):
        call.source(scenarios)
    else:
        for number, scenario in enumerate(_list("scenarios", scenarios), 1):
            call.source(scenario, f"<scenario {number}>")
    rows = call.documents()
    wrong = _error_documents(rows)
    if wrong and len(wrong) == len(rows):  # a variant that could not run is a row
        raise ScenarioError(_mistakes(wrong))
    return rows


def sweep(sweep, *, set=None, seed=1, jobs=None, full=False):
    call = _Call("sweep").source(sweep, "<sweep>").overrides(set).count("seed", seed).count("jobs", jobs)
    call.flag("full", full)
    with _signals:
        return call.answers()  # a point that cannot run is no error document


def search(scenario, *, set=None, vary=None, fix=(), gpus=None, top=10, exhaustive=False, price=None, jobs=None):
    call = _Call("search").source(scenario).overrides(set).vary(vary).option("gpus", gpus).count("top", top)
    for path in _list("fix", fix):
        call.text("fix", path)
    call.flag("exhaustive", exhaustive).text("price", price).count("jobs", jobs)
    with _signals:
        return call.document()


def schedule(name, *, stages, micro_batches, **costs):
    call = _Call("schedule").text("schedule", name).count("stages", stages).count("micro_batches", micro_batches)
    call.words.insert(0, "show")
    for option, value in costs.items():
        call.option(option, value)
    return call.document()
