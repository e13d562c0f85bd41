#!/usr/bin/env python3
"""Finds pages that contradict themselves.

consistency.py FILE...       golden pages as people read them (text, Markdown); exit 1 names each contradiction
of_report(report)            the same for a report as JSON (schema headrace.report/1), for the truth suites

A page contradicts itself where it says "input-bound" beside "keeps up", gives an estimate outside its own interval, names a
limit that is not the smallest of the bounds beside it, names the cores as used up that are not, uses more cores than there are,
has two values for one quantity, is undecided and sure, or grades a figure as another.
"""
import re
import sys

NUMBER = r"[+-]?\d+(?:\.\d+)?(?: [kMG](?![A-Za-z]))?"
# "48.8 % of each step [48.3, 49.4]", "+96 % [77, 101]", "122 batches/s [118, 125]": a figure, at most three words, its interval.
INTERVAL = re.compile(rf"({NUMBER}) ?(?:%|[A-Za-z/]+)?(?: of (?:each step|the time))? \[({NUMBER}), ({NUMBER})\]")
CORES = re.compile(r"(\d+\.\d+) of (\d+\.\d+) cores are in use")
RATE = re.compile(rf"({NUMBER}) batches/s")
GRADES = {"NOT": (0, 5), "MODERATELY": (5, 20), "HIGHLY": (20, 100)}  # % of each step
USED_UP = 0.8  # of the cores: less than that is not used up
BOUND_MARGIN = 1.05  # bounds are estimates: so far apart they may be taken for each other


def value_of(text):
    """ "12.4 k" is 12400."""
    number, _, scale = text.partition(" ")
    return float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[scale]


def rounding(text):
    """Half a unit in the last place that was printed."""
    number, _, scale = text.partition(" ")
    places = len(number.partition(".")[2]) if "." in number else 0
    return 0.5 * value_of(f"1 {scale}".strip()) * 10 ** -places


def bounds_beside(flat):
    """Contradictions of the sentence that says why: what limits comes first, and has the smallest bound."""
    said = re.search(r" limit ((?:(?! limit ).)*?) why (.*?)Measured: ", flat)
    if not said or said[1].startswith("undecided") or " together" in said[1] or " but " in flat or "waits for the slowest" in said[2]:
        return []
    rates = [value_of(rate) for rate in RATE.findall(said[2])]
    if len(rates) > 1 and rates[0] > BOUND_MARGIN * min(rates[1:]):
        return [f"the limit allows {rates[0]:g}, another {min(rates[1:]):g} batches/s"]
    return []


def of_text(text):
    found = []
    flat = re.sub(r"\s+", " ", text)
    if re.search(r"\b(HIGHLY|MODERATELY) input-bound", flat) and re.search(r"keeps up", flat):
        found.append("input-bound beside 'keeps up'")
    for value, low, high in INTERVAL.findall(flat):
        slack = rounding(value) + max(rounding(low), rounding(high))
        if not value_of(low) - slack <= value_of(value) <= value_of(high) + slack:
            found.append(f"{value} lies outside [{low}, {high}]")
    for used, cores in CORES.findall(flat):
        if float(used) > float(cores) + 0.01:
            found.append(f"{used} of {cores} cores are in use")
    if re.search(r"limit undecided[^.]*> 0\.99", flat) or re.search(r"> 0\.99\) (?:alike|together)", flat):
        found.append("undecided, and sure")
    if "No change is sure" in flat and re.search(r" next [^.]*? will limit it(?! still)", flat):
        found.append("what will limit it after a change that is not advised")
    for percent, grade in re.findall(r"waited ([\d.]+) %[^()]*\((\w+) means", flat):
        low, high = GRADES[grade]
        if not low <= float(percent) <= high or (float(percent) == high and grade == "NOT"):
            found.append(f"{percent} % graded as {grade}")
    found += bounds_beside(flat)
    for limit in re.findall(r"limit CPU cores .*?(?= limit |$)", flat):
        for used, cores in CORES.findall(limit)[:1]:
            if float(used) < USED_UP * float(cores) and "other programs" not in flat:
                found.append(f"the cores limit at {used} of {cores}")
    measured = re.findall(rf"[Mm]easured:? ({NUMBER}) batches/s", flat)
    if len(set(measured)) > 1:
        found.append(f"measured rates {sorted(set(measured))}")
    return found


def of_report(report):
    """Contradictions of one report: its words, and its words against its figures."""
    page = report.get("page", {})
    verdict = report.get("verdict", {})
    words = [page.get("badge", ""), page.get("verdict", "")] + page.get("conditions", [])
    words += [f"{line['label']} {line['text']}" for line in page.get("lines", [])]
    found = of_text("\n".join(words))
    labels = [line["label"] for line in page.get("lines", [])]
    # A stage within the limit (a lock that it waits for, a core that it computes on) has that bound too.
    bounds = {row["name"]: row["bound_batches_per_second"] for row in report.get("findings", [])
              if row.get("bound_batches_per_second") and row.get("within_limit") != "yes"}
    limit = verdict.get("limit", {}).get("name")
    if verdict.get("state") == "limited" and limit in bounds and "but" not in labels:
        least = min(bounds, key=bounds.get)
        if bounds[limit] > BOUND_MARGIN * bounds[least]:
            found.append(f"{limit} limits at {bounds[limit]:.4g}, though {least} allows {bounds[least]:.4g}")
    stall, low, high = (verdict.get("stall_ratio" + end) for end in ("", "_low", "_high"))
    if None not in (stall, low, high) and not low - 1e-9 <= stall <= high + 1e-9:
        found.append(f"stall {stall} outside [{low}, {high}]")
    gain, low, high = (verdict.get("predicted", {}).get("gain_ratio" + end) for end in ("", "_low", "_high"))
    if None not in (gain, low, high) and not low - 1e-9 <= gain <= high + 1e-9:
        found.append(f"gain {gain} outside [{low}, {high}]")
    fix = [line["text"] for line in page.get("lines", []) if line["label"] == "fix"]
    if fix and low is not None and low <= 0 and report.get("changes") and "No change is sure" not in fix[0]:
        found.append(f"advice whose interval holds 0: {fix[0]}")
    return found


def main(paths):
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for contradiction in of_text(file.read()):
                print(f"{path}: {contradiction}")
                bad += 1
    print(f"{len(paths)} pages, {bad} contradictions")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
