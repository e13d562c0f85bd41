#include <fmt/format.h>

#include <algorithm>

#include "dashboards/render/first_page_text.h"
#include "dashboards/render/render.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/render/table_layout.h"

namespace headrace::dashboards {
namespace {

constexpr int kSentenceLabelWidth = 9;

}  // namespace

std::string RenderText(const Report& unsafe, const TextOptions& options) {
  const Report report = SafeToPrint(unsafe);
  const int width = std::max(60, options.width);
  std::string out = report.first.badge.empty()
                        ? report.title + "\n"
                        : RenderFirstPage(report.title, report.first, options, !options.first_only);
  for (const Section& section : report.sections) {
    if (options.first_only) break;
    const bool tables =
        std::any_of(section.tables.begin(), section.tables.end(),
                    [](const Table& table) { return !table.machine_only && !table.not_in_text; });
    if (section.sentences.empty() && !tables) continue;
    if (!section.title.empty()) {
      out += "\n";
      for (const std::string& line : Wrap(section.title, static_cast<size_t>(width))) {
        out += line + "\n";
      }
    }
    for (const Sentence& sentence : section.sentences) {
      // A command is one line whatever its length, so that it can be pasted.
      const std::vector<std::string> lines =
          sentence.command ? std::vector<std::string>{sentence.text}
                           : Wrap(sentence.text, static_cast<size_t>(width - kSentenceLabelWidth));
      for (size_t i = 0; i < lines.size(); ++i) {
        out +=
            fmt::format("{:<{}}{}\n", i == 0 ? sentence.label : "", kSentenceLabelWidth, lines[i]);
      }
    }
    for (const Table& table : section.tables) {
      if (table.machine_only || table.not_in_text || table.rows.empty()) continue;
      if (!table.title.empty()) out += table.title + "\n";
      Table shown = table;
      const size_t more = table.text_rows > 0 && table.rows.size() > table.text_rows
                              ? table.rows.size() - table.text_rows
                              : 0;
      shown.rows.resize(table.rows.size() - more);
      for (const std::string& line : LayOut(shown, width - 2)) {
        out += line.empty() ? "\n" : "  " + line + "\n";
      }
      if (more > 0) out += fmt::format("  ({} more rows: --format md)\n", more);
    }
  }
  if (options.ascii) {
    // Names come from files; anything beyond ASCII becomes a question mark rather than a broken
    // line.
    for (char& c : out) {
      if (static_cast<unsigned char>(c) > 126) c = '?';
    }
  }
  return out;
}

}  // namespace headrace::dashboards
