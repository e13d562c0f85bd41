"""Instrumentation for Python data pipelines: `headrace profile -- python train.py` shows what each operator does.

    import headrace

    loader = headrace.wrap(loader)              # an iterable of batches, or a PyTorch DataLoader and its workers
    with headrace.operator("decode"): ...       # one step of the pipeline; also a decorator
    DataLoader(dataset, **headrace.apply("plan.json", DataLoader, batch_size=32))   # settings of a plan
    headrace.step()                             # the trainer's step ends here (otherwise: at its next request)
    headrace.report("latest")                   # the page of a recorded run, in a notebook
    headrace.views("headrace.db")["operator_summary"]  # a view of the run store, as an Arrow table where pyarrow is

Counters are kept in shared memory by libheadrace_account and read by the collector. Where the library is missing one
line says so and every call does nothing; with HEADRACE_ACCOUNTS=off in silence. See docs/python.md.
"""
from headrace._account import close, open, stage
from headrace._loader import step, wrap
from headrace._operator import bytes, operator, rows
from headrace._plan import PlanError, apply
from headrace._queue import queue

__all__ = ["PlanError", "Report", "ReportError", "Views", "apply", "bytes", "close", "open", "operator", "queue", "report",
           "rows", "stage", "step", "views", "wrap"]
_READING = {"Report": "_report", "ReportError": "_report", "report": "_report", "Views": "_views", "views": "_views"}
__version__ = "0.2.0"


def __getattr__(name):
    # What reads runs is imported where it is used: a program that is measured need not load SQLite for it.
    if name not in _READING:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(f"headrace.{_READING[name]}"), name)
