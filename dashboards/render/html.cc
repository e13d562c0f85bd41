#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dashboards/render/render.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/render/table_layout.h"

namespace headrace::dashboards {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>)";

constexpr const char* kStyle = R"(</title>
<style>
:root { color-scheme: light dark; --text: #1c1e21; --soft: #5d646d; --back: #fff; --line: #d5d9de;
  --head: #f3f5f7; --bar: #3b78b8; --track: #e4e8ec; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e6e9; --soft: #9aa3ad; --back: #16191c;
  --line: #343a40; --head: #20252a; --bar: #6ba7e5; --track: #2b3137; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; color: var(--text); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
nav { columns: 18rem; font-size: .9rem; }
nav a { display: block; color: inherit; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); }
dd { margin: 0; }
pre { overflow-x: auto; padding: .5rem; background: var(--head); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; }
caption { text-align: left; font-weight: 600; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { background: var(--head); font-weight: 600; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.none { color: var(--soft); }
.badge { padding: .15rem .6rem; border-radius: .3rem; color: #fff; background: #5d646d; }
.badge.good { background: #2b7a3d; } .badge.moderate { background: #8a6100; }
.badge.high { background: #b3261e; } .condition { font-weight: 600; }
svg { vertical-align: middle; margin-left: .4rem; }
</style>
</head>
<body>
)";

std::string HtmlEscaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// A share of 1 as a bar, with its interval as a thin line over it.
std::string Bar(const Quantity& quantity) {
  constexpr double kWidth = 80, kHeight = 10;
  const auto x = [](double ratio) { return kWidth * std::clamp(ratio, 0.0, 1.0); };
  std::string bar = fmt::format(
      "<svg width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-hidden=\"true\">"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"var(--track)\"/>"
      "<rect width=\"{2:.1f}\" height=\"{1:.0f}\" fill=\"var(--bar)\"/>",
      kWidth, kHeight, x(quantity.value()));
  if (quantity.has_interval() && std::isfinite(quantity.low()) && std::isfinite(quantity.high()))
    bar += fmt::format(
        "<rect x=\"{:.1f}\" y=\"4\" width=\"{:.1f}\" height=\"2\" fill=\"var(--text)\"/>",
        x(quantity.low()), std::max(0.5, x(quantity.high()) - x(quantity.low())));
  return bar + "</svg>";
}

std::string Cell(const Value& value) {
  const Quantity* quantity = std::get_if<Quantity>(&value);
  if (quantity == nullptr) return fmt::format("<td>{}</td>", HtmlEscaped(CellText(value)));
  if (!quantity->available()) {
    return fmt::format(
        "<td class=\"none\">{}</td>",
        HtmlEscaped(quantity->reason().empty() ? "unavailable"
                                               : "unavailable: " + quantity->reason()));
  }
  const bool share = quantity->unit() == Unit::kRatio && quantity->value() >= 0 &&
                     quantity->value() <= 1 && std::isfinite(quantity->value());
  return fmt::format("<td class=\"n\">{}{}</td>", HtmlEscaped(CellText(value)),
                     share ? Bar(*quantity) : "");
}

void AppendTable(const Table& table, std::string* out) {
  *out += "<div class=\"wide\"><table>\n";
  if (!table.title.empty())
    *out += fmt::format("<caption>{}</caption>\n", HtmlEscaped(table.title));
  const size_t columns = table.page_columns > 0 ? std::min(table.page_columns, table.columns.size())
                                                : table.columns.size();
  *out += "<thead><tr>";
  for (size_t i = 0; i < columns; ++i)
    *out += fmt::format("<th scope=\"col\">{}</th>", HtmlEscaped(table.columns[i].title));
  *out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Value>& row : table.rows) {
    *out += "<tr>";
    for (size_t i = 0; i < std::min(columns, row.size()); ++i) *out += Cell(row[i]);
    *out += "</tr>\n";
  }
  *out += "</tbody></table></div>\n";
}

void AppendSentences(const std::vector<Sentence>& sentences, std::string* out) {
  bool list = false;
  for (const Sentence& sentence : sentences) {
    if (sentence.command) {
      if (list) *out += "</dl>\n";
      list = false;
      *out += fmt::format("<pre>{}</pre>\n", HtmlEscaped(sentence.text));
      continue;
    }
    if (!list) *out += "<dl>\n";
    list = true;
    *out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", HtmlEscaped(sentence.label),
                        HtmlEscaped(sentence.text));
  }
  if (list) *out += "</dl>\n";
}

// The first page: a badge in the colour of its severity, the verdict, then its lines.
void AppendFirstPage(const FirstPage& page, std::string* out) {
  if (page.badge.empty()) return;
  const char* classes[] = {"none", "good", "moderate", "high"};
  *out += fmt::format("<p><b class=\"badge {}\">{}</b> {}</p>\n",
                      classes[static_cast<size_t>(page.severity)], HtmlEscaped(page.badge),
                      HtmlEscaped(page.verdict));
  for (const std::string& condition : page.conditions) {
    *out += fmt::format("<p class=\"condition\">{}</p>\n", HtmlEscaped(condition));
  }
  std::vector<Sentence> sentences;
  for (const PageLine& line : page.lines) {
    if (line.label != "more") sentences.push_back({line.label, line.text, line.command});
  }
  AppendSentences(sentences, out);
}

bool HasContent(const Section& section) {
  return !section.sentences.empty() ||
         std::any_of(section.tables.begin(), section.tables.end(),
                     [](const Table& table) { return !table.machine_only && !table.rows.empty(); });
}

}  // namespace

std::string RenderHtml(const Report& unsafe) {
  const Report report = SafeToPrint(unsafe);
  std::string out = kHead + HtmlEscaped(report.title) + kStyle;
  out += fmt::format("<h1>{}</h1>\n", HtmlEscaped(report.title));
  std::string contents, body;
  size_t number = 0;
  AppendFirstPage(report.first, &out);
  for (const Section& section : report.sections) {
    if (!HasContent(section)) continue;
    if (!section.title.empty()) {
      const std::string title = HtmlEscaped(section.title);
      contents += fmt::format("<a href=\"#s{}\">{}</a>\n", number, title);
      body += fmt::format("<h2 id=\"s{}\">{}</h2>\n", number, title);
      ++number;
    }
    AppendSentences(section.sentences, &body);
    for (const Table& table : section.tables)
      if (!table.machine_only && !table.rows.empty()) AppendTable(table, &body);
  }
  // The first block stands above the list of what follows only where there is much to list.
  if (number > 3) out += "<nav>\n" + contents + "</nav>\n";
  return out + body + "</body>\n</html>\n";
}

}  // namespace headrace::dashboards
