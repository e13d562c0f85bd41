#!/usr/bin/env python3
"""Checks what the documents say against the tree, without running anything: documents.py [CHECK...]

  links      every relative link leads to a file, and its anchor to a heading of that file
  messages   every message that docs/troubleshooting.md quotes is in the source
  tutorial   the program in docs/tutorial.md is docs/examples/tutorial.py
  commands   every command line that does not start with headrace (tests/docs/examples.bats runs those) is tried by another test, or
             has a reason why not, in OTHERS below
  glossary   the glossary is in order and defines no word twice
  start      the README shows the two commands that build, `make demo` and `make test`
  sentences  of the table of sentences in CONTRIBUTING.md: what was there before is in no string and no document, what is there now is
  site       mkdocs.yml lists every document once, in the order of docs/index.md
  words      how many words the documents have that people write, outside code blocks: only if it is asked for

Prints what is wrong, one line each, and ends with 1. tests/docs/documents_test.py checks that it finds what it should.
"""
import pathlib
import re
import sys

# Where lines of documents are tried that start another program than headrace; or why they are not.
OTHERS = {
    r"make (demo|test)": "each builds all there is; CI runs make test",
    r"cc .*reader\.c|\./reader": "tests/python/test_install.py builds and runs it; tests/packaging/packages.bats with pkg-config",
    r"cc .*tunable\.c|\./tunable": "tests/cli/tune_feed.bats",
    r"(sudo )?systemctl": "needs systemd, which test systems lack",
    r"sudo apt install": "tests/packaging/clean_root.bats",
    r"srun|kubectl|docker": "needs a cluster or a container daemon, which test systems lack",
    r"ssh": "needs another machine",
    r"sbatch|scontrol": "tests/truth/service_slurm.py, where Slurm is installed",
    r"python3 -m venv|(env/bin/)?pip install .*headrace.*\.whl": "tests/packaging/wheel.bats, clean_root.bats",
    r"export PYTHONPATH=|pip install --no-index": "tests/python/test_install.py",
    r"pip install torch": "as large as all else together; tests/abroad has programs with torch where it is there",
    r"python3 tests/validation/": "takes up to an hour; docs/statistics.md says what came of it",
}
PROGRAMS = r"(sudo |env/bin/)?(pip|python3?|docker|make|srun|kubectl|cc|c\+\+|g?cc|apt|apt-get|systemctl|ssh|sbatch|scontrol|tar|dpkg|sh|cmake|curl|npm|torchrun|\./\w)|export "

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def without_code(text):
    """The text with code blocks and code in lines blanked."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """The anchors of a document's headings, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        number, name = 0, anchor
        while name in found:
            number += 1
            name = f"{anchor}-{number}"
        found.add(name)
    return found


def links(source):
    for document in [*sorted(source.glob("*.md")), *sorted(source.glob("docs/*.md"))]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", without_code(text)):
            path, _, anchor = target.partition("#")
            place = document if not path else (document.parent / path).resolve()
            if not place.exists():
                yield f"{document.relative_to(source)}: there is no {path}"
            elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text(encoding="utf-8")):
                yield f"{document.relative_to(source)}: {place.name} has no heading for #{anchor}"


def literals(source):
    """All strings of the source, those written one after the other joined, one per line."""
    texts = []
    for folder in ("analysis", "base", "cli", "collectors", "dashboards", "experiments", "probes", "reader", "workloads"):
        for file in sorted((source / folder).rglob("*")):
            if file.suffix in (".cc", ".h", ".def", ".inc", ".py") and file.is_file():
                code = file.read_text(encoding="utf-8")
                code = re.sub(r'"\s*f?"', "", code)
                texts += re.findall(r'"((?:[^"\\\n]|\\.)*)"', code)
    return "\n".join(texts)


def in_source(message, text):
    """Whether a quoted message is in the source: each of its parts in one string. An error is put together of place, fact and what to do,
    by ": " and "; "; the dots stand for what is filled in."""
    return all(part.strip() in text for part in re.split(r"…|[:;] ", message))


def messages(source, quoted=None):
    text = literals(source)
    if quoted is None:
        quoted = re.findall(r"^### `(.*)`$", (source / "docs/troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)
        if len(quoted) < 20:
            yield f"docs/troubleshooting.md: {len(quoted)} messages found; headings are ### `message`"
    for message in quoted:
        if message != "is not a supported wheel on this platform" and not in_source(message, text):  # pip's own
            yield f"docs/troubleshooting.md: no string of the source has: {message}"


def tutorial(source):
    program = (source / "docs/examples/tutorial.py").read_text(encoding="utf-8").strip()
    if program not in (block.strip() for block in blocks(source / "docs/tutorial.md")):
        yield "docs/tutorial.md: its program is not docs/examples/tutorial.py"


def blocks(document):
    return re.findall(r"^```\w*\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(source, others=None):
    others, used = OTHERS if others is None else others, set()
    for document in [source / "README.md", *sorted(source.glob("docs/*.md"))]:
        for block in blocks(document):
            for line in block.splitlines():
                line = line.removeprefix("$ ")
                if not re.match(rf"({PROGRAMS})\b", line) or re.match(r"\w+ *=", line):
                    continue
                found = [pattern for pattern in others if re.match(pattern, line)]
                used.update(found)
                if not found:
                    yield f"{document.relative_to(source)}: no test is named for: {line}"
    for pattern in others:
        if pattern not in used:
            yield f"tests/docs/documents.py: no line matches {pattern}: remove it"


def glossary(source):
    words = re.findall(r"^\| ([^|]+) \| ", (source / "docs/concepts.md").read_text(encoding="utf-8").split("## Glossary")[1], re.MULTILINE)
    words = [word for word in words if word not in ("word", "---")]
    if len(words) < 20:
        yield f"docs/concepts.md: {len(words)} words found in the glossary"
    for before, after in zip(words, words[1:]):
        if after.lower() <= before.lower():
            yield f"docs/concepts.md: '{after}' stands after '{before}'"


def site(source):
    listed = re.findall(r"(\S+\.md)$", (source / "packaging/docs/mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    there = {document.name for document in source.glob("docs/*.md")}
    for name in sorted(there - set(listed)):
        yield f"packaging/docs/mkdocs.yml lacks {name}"
    for name in sorted(set(listed) - there):
        yield f"packaging/docs/mkdocs.yml lists {name}, which is not there"
    if len(listed) != len(set(listed)):
        yield "packaging/docs/mkdocs.yml lists a document twice"
    rows = re.findall(r"^\| \[.*?\|", (source / "docs/index.md").read_text(encoding="utf-8"), re.MULTILINE)
    order = ["index.md", *(name for row in rows for name in re.findall(r"\]\((\w[\w-]*\.md)\)", row))]
    for here, at_index in zip(listed, order):
        if here != at_index:
            yield f"packaging/docs/mkdocs.yml has {here} where docs/index.md has {at_index}"
            break


def start(source):
    shown = "\n".join(blocks(source / "README.md"))
    for command in ("make demo", "make test"):
        if not re.search(rf"^{command}\b", shown, re.MULTILINE):
            yield f"README.md: no block shows {command}"


def sentences(source):
    """In the last column dots stand for what is filled in, as in docs/troubleshooting.md; in brackets: nothing took its place."""
    flat = lambda text: re.sub(r"\s+", " ", text)  # noqa: E731
    documents = [source / "README.md", *sorted(source.glob("docs/*.md"))]
    text = flat("\n".join([literals(source), *(document.read_text(encoding="utf-8") for document in documents)]))
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (source / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    rows = [row for row in rows if row[0] not in ("where", "---")]
    if len(rows) < 20:
        yield f"CONTRIBUTING.md: {len(rows)} sentences found"
    for _, before, now in rows:
        if before in text:
            yield f"CONTRIBUTING.md: this is still there: {before}"
        if not now.startswith("(") and not in_source(now, text):
            yield f"CONTRIBUTING.md: this is not there: {now}"


PRINTED = {"accuracy", "accuracy-real", "characterization", "events", "features"}  # by programs, whatever they find


def words(source):
    """A third less than the 87,551 of 2026-11-26 was asked."""
    count = sum(len(re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL).split())
                for document in source.glob("docs/*.md") if document.stem not in PRINTED)
    print(f"{count} words; at most 58,367 were asked")
    if count > 58367:
        yield f"docs: {count - 58367} words too many"


CHECKS = {"links": links, "messages": messages, "tutorial": tutorial, "commands": commands, "glossary": glossary, "site": site,
          "start": start, "sentences": sentences}


def main(names):
    checks = {**CHECKS, "words": words}
    unknown = [name for name in names if name not in checks]
    if unknown:
        sys.exit(f"documents.py: no check {unknown[0]}; there are {', '.join(checks)}")
    wrong = [line for name in names or CHECKS for line in checks[name](SOURCE)]
    print("\n".join(wrong) if wrong else "the documents are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
