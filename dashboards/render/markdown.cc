#include <fmt/format.h>

#include <algorithm>

#include "dashboards/render/render.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/render/table_layout.h"

namespace headrace::dashboards {
namespace {

std::string MarkdownEscaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|' || c == '<' || c == '\\' || c == '*' || c == '_' || c == '`') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string FirstPageMarkdown(const FirstPage& page) {
  if (page.badge.empty()) return "";
  std::string out =
      fmt::format("\n**{}** {}\n\n", MarkdownEscaped(page.badge), MarkdownEscaped(page.verdict));
  for (const std::string& condition : page.conditions)
    out += "> " + MarkdownEscaped(condition) + "\n\n";
  for (const PageLine& line : page.lines) {
    if (line.label == "more") continue;  // the rest follows
    if (line.command) {
      out += "\n```\n" + line.text + "\n```\n\n";
    } else {
      out += fmt::format("- **{}** {}\n", MarkdownEscaped(line.label), MarkdownEscaped(line.text));
    }
  }
  return out;
}

}  // namespace

std::string RenderMarkdown(const Report& unsafe) {
  const Report report = SafeToPrint(unsafe);
  std::string out = "# " + MarkdownEscaped(report.title) + "\n";
  out += FirstPageMarkdown(report.first);
  for (const Section& section : report.sections) {
    bool any = !section.sentences.empty();
    for (const Table& table : section.tables) any = any || !table.machine_only;
    if (!any) continue;
    out += section.title.empty() ? "\n" : "\n## " + MarkdownEscaped(section.title) + "\n\n";
    for (const Sentence& sentence : section.sentences) {
      if (sentence.label.empty()) {
        out += "\n```\n" + sentence.text + "\n```\n\n";
      } else {
        out += fmt::format("- **{}** {}\n", MarkdownEscaped(sentence.label),
                           MarkdownEscaped(sentence.text));
      }
    }
    for (const Table& table : section.tables) {
      if (table.machine_only || table.rows.empty()) continue;
      out += table.title.empty() ? "\n" : "\n**" + MarkdownEscaped(table.title) + "**\n\n";
      std::string rule = "|";
      out += "|";
      const size_t columns = table.page_columns > 0 ? table.page_columns : table.columns.size();
      for (size_t i = 0; i < columns; ++i) {
        out += " " + MarkdownEscaped(table.columns[i].title) + " |";
        rule += !table.rows.empty() && IsNumber(table.rows[0][i]) ? " ---: |" : " --- |";
      }
      out += "\n" + rule + "\n";
      for (const std::vector<Value>& row : table.rows) {
        out += "|";
        for (size_t i = 0; i < std::min(columns, row.size()); ++i) {
          out += " " + MarkdownEscaped(CellText(row[i])) + " |";
        }
        out += "\n";
      }
    }
  }
  return out;
}

}  // namespace headrace::dashboards
