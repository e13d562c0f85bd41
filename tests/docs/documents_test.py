"""tests/docs/documents.py: each of its checks finds what it is for."""
import pathlib
import tempfile
import unittest

import documents


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.source = pathlib.Path(self.folder.name)
        for folder in ("docs/examples", "cli", "packaging/docs"):
            (self.source / folder).mkdir(parents=True)

    def write(self, name, text):
        (self.source / name).write_text(text, encoding="utf-8")

    def test_links_to_files_and_headings(self):
        self.write("docs/a.md", "# A b: c\n[x](b.md) [y](#a-b-c) [z](b.md#two-1) `[no](gone.md)`\n```\n[no](gone.md)\n```\n")
        self.write("docs/b.md", "# One\n## Two\n## Two\n```\n# no heading\n```\n")
        self.assertEqual(list(documents.links(self.source)), [])
        self.write("README.md", "[x](docs/gone.md) [y](docs/b.md#no-heading) [z](https://example.org/gone.md)")
        self.assertEqual(list(documents.links(self.source)),
                         ["README.md: there is no docs/gone.md", "README.md: b.md has no heading for #no-heading"])

    def test_a_message_is_in_one_string_of_the_source(self):
        self.write("cli/a.cc", 'throw Error(kCode, fmt::format("no process {}", pid), {}, "look it "\n    "up");\n')
        self.assertEqual(list(documents.messages(self.source, ["no process …; look it up"])), [])
        self.assertEqual(len(list(documents.messages(self.source, ["no process …; look up"]))), 1)

    def test_the_tutorials_program(self):
        self.write("docs/examples/tutorial.py", "print(1)\n")
        self.write("docs/tutorial.md", "```python\nprint(1)\n```\n")
        self.assertEqual(list(documents.tutorial(self.source)), [])
        self.write("docs/tutorial.md", "```python\nprint(2)\n```\n")
        self.assertEqual(len(list(documents.tutorial(self.source))), 1)

    def test_commands_of_other_programs_have_a_test_or_a_reason(self):
        self.write("README.md", "```sh\nheadrace run\n$ docker run x\nmake = 1\n```\n")
        self.assertEqual(list(documents.commands(self.source, {"docker": "no daemon"})), [])
        self.assertEqual(list(documents.commands(self.source, {})), ["README.md: no test is named for: docker run x"])
        self.assertEqual(len(list(documents.commands(self.source, {"docker": "no daemon", "ssh": "no machine"}))), 1)

    def test_the_glossarys_order(self):
        words = [f"w{number:02}" for number in range(30)]
        rows = lambda some: "## Glossary\n" + "".join(f"| {word} | means |\n" for word in some)  # noqa: E731
        self.write("docs/concepts.md", rows(words))
        self.assertEqual(list(documents.glossary(self.source)), [])
        self.write("docs/concepts.md", rows([*words, "w29", "a"]))
        self.assertEqual(len(list(documents.glossary(self.source))), 2)

    def test_the_readme_shows_how_to_build(self):
        self.write("README.md", "```\nmake demo    # runs it\nmake test\n```\n")
        self.assertEqual(list(documents.start(self.source)), [])
        self.write("README.md", "`make test`\n```\nmake demo\nmake tests\n```\n")
        self.assertEqual(list(documents.start(self.source)), ["README.md: no block shows make test"])

    def test_sentences_that_were_replaced(self):
        self.write("README.md", "It says what\nlimits it.\n")
        self.write("cli/a.cc", 'Print("the limit is {}; {} more");\n')
        rows = lambda *some: "".join(f"| x | {before} | {now} |\n" for before, now in some)  # noqa: E731
        good = [("told by", "what limits it"), ("border", "the limit is …; … more"), ("mood", "(gone)")] * 7
        self.write("CONTRIBUTING.md", "| where | before | now |\n|---|---|---|\n" + rows(*good))
        self.assertEqual(list(documents.sentences(self.source)), [])
        self.write("CONTRIBUTING.md", rows(*good, ("what limits it", "(gone)"), ("mood", "what is the limit")))
        self.assertEqual(list(documents.sentences(self.source)), ["CONTRIBUTING.md: this is still there: what limits it",
                                                                  "CONTRIBUTING.md: this is not there: what is the limit"])

    def test_the_sites_list(self):
        self.write("docs/a.md", "# A\n")
        self.write("docs/b.md", "# B\n")
        self.write("docs/index.md", "See [b.md](b.md).\n\n| [a.md](a.md) | also [b.md](b.md) |\n| [b.md](b.md), [x](x) | b |\n")
        self.write("packaging/docs/mkdocs.yml", "nav:\n  - Home: index.md\n  - a.md\n  - b.md\n")
        self.assertEqual(list(documents.site(self.source)), [])
        self.write("packaging/docs/mkdocs.yml", "nav:\n  - index.md\n  - b.md\n  - a.md\n")
        self.assertEqual(list(documents.site(self.source)), ["packaging/docs/mkdocs.yml has b.md where docs/index.md has a.md"])
        self.write("packaging/docs/mkdocs.yml", "nav:\n  - index.md\n  - a.md\n  - a.md\n  - c.md\n")
        self.assertEqual(len(list(documents.site(self.source))), 4)


unittest.main()
