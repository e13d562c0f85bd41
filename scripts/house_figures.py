#!/usr/bin/env python3
"""Figures of how the source is built up, for docs/measurements.md ("The house").

usage: house_figures.py [TREE [BUILD]]   TREE: a checkout, else this one; BUILD: its build folder, for what headers make compile again

A unit is a header and its source. A function is counted from the first line of its signature to its closing brace, where that stands
alone at the same indentation (as clang-format leaves it). LIST=1 in the environment names what is counted.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
LAYERS = ["base", "probes", "collectors", "reader", "analysis", "dashboards", "workloads", "experiments", "cli"]
HEADERS = ["analysis/run/run_view.h", "analysis/run_view.h", "analysis/model/limits/limit.h", "analysis/program/allocation.h",
           "analysis/allocation.h", "collectors/store/store.h", "reader/pipeline/spec.h"]
files = sorted(path for layer in LAYERS for path in (tree / layer).rglob("*") if path.suffix in (".cc", ".h"))
text = {path.relative_to(tree).as_posix(): path.read_text().split("\n") for path in files}

includes = collections.defaultdict(set)
for name, lines in text.items():
    unit = name.rsplit(".", 1)[0]
    for line in lines:
        found = re.match(r'\s*#include "([^"]+)\.h"', line)
        if found and found[1] != unit:
            includes[unit].add(found[1])


def reached(start):
    seen, left = set(), list(includes[start])
    while left:
        unit = left.pop()
        if unit not in seen:
            seen.add(unit)
            left += includes.get(unit, ())
    return seen


reach = {unit: reached(unit) for unit in list(includes)}
circles = {frozenset(other for other in reach[unit] if unit in reach.get(other, ())) for unit in reach if unit in reach[unit]}
print(f"circles of units that include each other: {len(circles)}")
print(f"files over 600 lines: {sum(len(lines) - 1 > 600 for lines in text.values())}")
print(f"lines of production code: {sum(len(lines) - 1 for lines in text.values())}")
print(f"lines in cli/: {sum(len(lines) - 1 for name, lines in text.items() if name.startswith('cli/'))}")

# Sources that have to be compiled again when a header changes: those that include it, or include what includes it.
headers = {name.rsplit(".", 1)[0] for name in text if name.endswith(".h")}
sources = {name.rsplit(".", 1)[0] for name in text if name.endswith(".cc")}
direct = {}
for name, lines in text.items():
    direct[name] = {found[1] for line in lines if (found := re.match(r'\s*#include "([^"]+)\.h"', line))}


def compiled_again(header):
    seen, left = {header}, [header]
    while left:
        at = left.pop()
        for name in includers[at]:
            unit = name.rsplit(".", 1)[0]
            if name.endswith(".h") and unit not in seen:
                seen.add(unit)
                left.append(unit)
    return {name for unit in seen for name in includers[unit] if name.endswith(".cc")}


includers = collections.defaultdict(set)
for name, found in direct.items():
    for header in found:
        includers[header].add(name)
again = {header: len(compiled_again(header)) for header in headers if not header.startswith("base/")}
for header in sorted(again, key=lambda one: (-again[one], one))[:5]:
    print(f"sources that {header}.h makes compile again: {again[header]} of {len(sources)}")

# The line that opens a function's body, and the line where its signature begins: it may be wrapped.
closed = re.compile(r"\)( const)?( noexcept)?( override)?( final)?( ->.*)?( : .*)? \{$")
other = re.compile(r"\s*(if|for|while|switch|namespace|struct|class|enum|else|do|case|return|static const|HR_|\}|//|#)")


def begin_of(lines, at):
    """Where the signature of the function begins whose body opens at this line; None: it is no function."""
    if not lines[at].endswith("{") or other.match(lines[at]):
        return None
    first = at
    while first > 0 and re.match(r"\s{4}", lines[first]) and lines[first - 1].strip() and not lines[first - 1].endswith((";", "}", ":")):
        first -= 1
    signature = " ".join(line.strip() for line in lines[first:at + 1])
    if other.match(lines[first]) or not re.match(r"(  )?[A-Za-z_~\[]", lines[first]) or not closed.search(signature):
        return None
    return first


lengths = []
for name, lines in text.items():
    at = 0
    while name.endswith(".cc") and at < len(lines):
        first = begin_of(lines, at)
        if first is not None:
            end = " " * (len(lines[first]) - len(lines[first].lstrip())) + "}"
            last = lines.index(end, at) if end in lines[at:] else at
            lengths.append((last - first + 1, name, first + 1))
            at = last
        at += 1
print(f"functions over 60 lines: {sum(n > 60 for n, name, line in lengths)}; of analysis/ over 80: "
      f"{sum(n > 80 and name.startswith('analysis/') for n, name, line in lengths)}")

if os.environ.get("LIST"):
    for lines, name in sorted(((len(lines) - 1, name) for name, lines in text.items()), reverse=True):
        if lines > 600:
            print(f"  {lines} lines: {name}")
    for length, name, line in sorted(lengths, reverse=True):
        if length > 60:
            print(f"  {length} lines: {name}:{line}")

if len(sys.argv) > 2:
    units = collections.defaultdict(set)
    current = ""
    for line in subprocess.check_output(["ninja", "-C", sys.argv[2], "-t", "deps"], text=True).split("\n"):
        if line and not line.startswith(" "):
            current = line.split(":")[0]
        for header in HEADERS:
            if line.strip().endswith("/" + header):
                units[header].add(current)
    for header, objects in units.items():
        print(f"{header}: {len(objects)} units, {sum(not o.startswith('tests/') for o in objects)} of production")
