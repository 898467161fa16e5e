from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Union

__version__: str

Scenario = Union[str, PathLike[str], Mapping[str, Any]]
Document = dict[str, Any]

class ScenarioError(ValueError):
    diagnostics: list[Document]
    def __init__(self, diagnostics: list[Document]) -> None: ...

class InternalError(RuntimeError): ...

def simulate(
    scenario: Scenario, *, set: Mapping[str, Any] | None = None, unfold: bool = False, why: bool = False
) -> Document:
    """What `stagecraft run --json` prints: the iteration time, its breakdown, the memory ledger, …"""

def check(scenario: Scenario, *, set: Mapping[str, Any] | None = None) -> Document:
    """What `stagecraft check --json` prints: whether the scenario can run, and how the GPUs are split. No simulation."""

def memory(scenario: Scenario, *, set: Mapping[str, Any] | None = None) -> Document:
    """What `stagecraft memory --json` prints: the ledger of every stage, the verdict, what would help."""

def goodput(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int = 1,
    jobs: int = 1,
    timeline: bool = False,
    plan: bool = False,
) -> Document:
    """What `stagecraft goodput --json` prints: throughput under the scenario's `failures`."""

def explain(
    scenario: Scenario,
    path: str,
    *,
    set: Mapping[str, Any] | None = None,
    depth: int = 2,
    sensitivities: bool = True,
) -> Document | list[Document]:
    """What `stagecraft explain --json` prints: where the figure at `path` comes from. A list where `path` is a part of the
    result with several figures, such as "bubble"."""

def compare(
    scenarios: Scenario | Iterable[Scenario],
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    jobs: int = 1,
) -> list[Document]:
    """What `stagecraft compare --json` prints: a row for each variant, in order. One that cannot run is a row with
    `errors`; if none can, ScenarioError."""

def sweep(
    sweep: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int = 1,
    jobs: int | None = None,
    full: bool = False,
) -> list[Document]:
    """What `stagecraft sweep --json` prints: a row for each point, in grid order. On all cores unless `jobs` says how many."""

def search(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    fix: str | Iterable[str] = (),
    gpus: str | int | None = None,
    top: int = 10,
    exhaustive: bool = False,
    price: str | None = None,
    jobs: int | None = None,
) -> Document:
    """What `stagecraft search --json` prints: the best plans, and why the others were refused."""

def schedule(name: str, *, stages: int, micro_batches: int, **costs: Any) -> Document:
    """What `stagecraft schedule show --json` prints: the order of every rank and its bubble. Further options as keywords:
    chunks=2, forward="1 ms", message="50 us"."""
