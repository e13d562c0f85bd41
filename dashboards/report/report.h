// Report: what is said about a run, as facts and tables of quantities, without format, SQL or
// colour. Renderers (dashboards/render) turn it into text, Markdown or JSON and know no section.
//
// A section is one file in dashboards/report/sections that ends with HR_SECTION.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/advice/statements.h"
#include "analysis/run/run_view.h"
#include "base/quantity.h"
#include "base/registry.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// Text, or a number with its unit and source, or the reason why there is none.
using Value = std::variant<std::string, Quantity>;

// One line of a block for people: "CULPRIT  decode (zlib), probability 0.97 ...".
struct Sentence {
  std::string label;  // "VERDICT"; may be empty
  std::string text;
  bool command = false;  // printed on one line whatever its length, to be pasted
};

// A named value for machines, beside the sentences that say it. `key` may be dotted: "limit.name".
struct Fact {
  std::string key;
  Value value;
};

struct Column {
  std::string key;    // in JSON: "busy_ratio"
  std::string title;  // for people: "busy"
};

struct Table {
  std::string key;  // in JSON, at the top level: "operators"
  std::string title;
  std::vector<Column> columns;  // the first names the row; narrow output drops from the right
  std::vector<std::vector<Value>> rows;
  bool machine_only = false;  // for people, sentences already say it
  // Where the table is too wide, the columns from here on stand in a second block under the first,
  // again headed by the row's name. 0: the table has one block only.
  size_t second_block = 0;
  // Text shows at most this many rows, and says how many more there are; Markdown and JSON have
  // all. 0: all.
  size_t text_rows = 0;
  // Markdown shows this many columns, JSON has all. 0: all.
  size_t page_columns = 0;
  bool not_in_text = false;  // too wide for text, in which sentences say what matters
};

struct Section {
  std::string key;    // "verdict"; facts are put under it in JSON
  std::string title;  // heading; empty for the first block
  std::vector<Sentence> sentences;
  std::vector<Fact> facts;
  std::vector<Table> tables;
  std::string name = "";  // registered name, by which people ask for it; set by MakeReport
};

struct Report {
  std::string title;
  std::vector<Section> sections;
  bool decided = true;   // false: the verdict was withheld or undecided (exit code 4)
  FirstPage first = {};  // without a badge there is no first page
};

// A section may have nothing to say. `order` places it: smaller first.
struct SectionEntry {
  int order = 0;
  std::optional<Section> (*make)(const analysis::RunView&, const analysis::Statements&) = nullptr;
};

#define HR_SECTION(name, order, function)                                            \
  [[maybe_unused]] static const bool HR_REGISTRAR =                                  \
      ::headrace::Registry<::headrace::dashboards::SectionEntry>::Global().Add(name, \
                                                                               {order, function})

}  // namespace headrace::dashboards
