"""apply(): the settings of a plan (`headrace plan --emit dataloader -o plan.json`) as arguments of a DataLoader.

Nothing is set behind anyone's back: apply() returns keyword arguments and says on stderr what differs and why. It works
without torch, without the instrumentation library, and edits no file.
"""
import json
import os
import sys

from headrace._loader import _is_iterable_kind

SCHEMA = "headrace.plan/1"
TARGET = "torch.utils.data.DataLoader"

# What a loader is made of, by the names that both its constructor and its attributes have, beside how it batches.
_COPIED = ("dataset", "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
           "generator", "prefetch_factor", "persistent_workers", "pin_memory_device", "in_order")
_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
_DEFAULTS = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "pin_memory": False,
             "in_order": True}


class PlanError(ValueError):
    """The plan cannot be applied; says where and what to do."""


def _read(plan):
    if isinstance(plan, dict):
        return plan, "the plan"
    path = os.fspath(plan)
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file), path
    except ValueError as error:
        raise PlanError(f"{path}: not JSON ({error}); make it with 'headrace plan RUN --emit dataloader -o {path}'") from None


def settings_of(plan):
    """(settings, reasons) of a plan: a path, or what json.load() made of it. Raises PlanError where it has none."""
    plan, where = _read(plan)
    make = "make it with 'headrace plan RUN --emit dataloader -o plan.json'"
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise PlanError(f"{where}: not a plan ({SCHEMA}); {make}")
    emitted = plan.get("emit")
    if not isinstance(emitted, dict) or emitted.get("target") != TARGET or not isinstance(emitted.get("settings"), dict):
        raise PlanError(f"{where}: has no settings for a DataLoader; {make}")
    settings = {}
    for name, value in emitted["settings"].items():
        known = _DEFAULTS.get(name, _DEFAULTS)
        if known is _DEFAULTS:
            raise PlanError(f"{where}: '{name}' is no argument that a plan sets")
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not (isinstance(value, bool) if isinstance(known, bool) else is_number and value >= 0):
            raise PlanError(f"{where}: {name}={value!r} cannot be")
        settings[name] = value
    reasons = {line.get("name"): line.get("why", "") for line in emitted.get("lines", []) if isinstance(line, dict)}
    return settings, reasons


def arguments_of(loader):
    """The keyword arguments with which a loader like this one is made. Raises PlanError for one that cannot be made again
    from what it shows of itself."""
    missing = object()
    arguments = {}
    for name in _COPIED:
        value = getattr(loader, name, missing)
        if value is not missing:
            arguments[name] = value
    if "dataset" not in arguments or "num_workers" not in arguments:
        raise PlanError(f"{type(loader).__name__} is no DataLoader: give apply() its class and arguments instead")
    if not arguments.get("pin_memory_device", True):
        del arguments["pin_memory_device"]
    sampler = getattr(loader, "batch_sampler", None)
    if sampler is not None and getattr(loader, "batch_size", None) is None:
        arguments["batch_sampler"] = sampler
        return arguments
    for name in ("batch_size", "drop_last"):
        if hasattr(loader, name):
            arguments[name] = getattr(loader, name)
    # An IterableDataset's sampler is torch's own and cannot be given again.
    if getattr(loader, "sampler", None) is not None and not _is_iterable_kind(loader):
        arguments["sampler"] = loader.sampler
    return arguments


def _takes(kind, name):
    """Whether a DataLoader of this class takes the argument; where that cannot be seen, it is taken to."""
    import inspect
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


def apply(plan, loader, *, quiet=False, **arguments):
    """The keyword arguments of a DataLoader with the settings of a plan.

        DataLoader(dataset, **headrace.apply("plan.json", DataLoader, batch_size=32, num_workers=2))
        DataLoader(**headrace.apply("plan.json", loader))         # of a loader there is, dataset included

    plan: the path of a plan made by `headrace plan RUN --emit dataloader -o FILE`, or its content as a dict.
    loader: the class, with its arguments after it; or a loader, whose own are taken (`arguments` go before them).
    Nothing is made or changed: the arguments are returned, and what differs is printed on stderr with the reason, unless
    quiet=True. What the plan is silent on stays, the multiprocessing context too. Raises PlanError for what is not such
    a plan, OSError where it cannot be read.
    """
    settings, reasons = settings_of(plan)
    kind = loader if isinstance(loader, type) else getattr(type(loader), "_headrace_base", type(loader))
    result = {} if isinstance(loader, type) else arguments_of(loader)
    result.update(arguments)
    lines = []
    for name, value in settings.items():
        before = result.get(name, _DEFAULTS[name])
        if not _takes(kind, name):
            lines.append(f"  {name}: {kind.__name__} does not take it, left out")
            continue
        if value == before:
            continue
        result[name] = value
        lines.append(f"  {name}: {before} -> {value}  ({reasons.get(name, '')})")
    if not result.get("num_workers", 0):  # torch refuses these without workers
        for name in _NEED_WORKERS:
            if result.pop(name, None) and name in settings:
                lines.append(f"  {name}: left out, as there are no workers")
    if not quiet:
        print("\n".join(["headrace: the plan changes nothing"] if not lines else ["headrace: by the plan"] + lines),
              file=sys.stderr, flush=True)
    return result
