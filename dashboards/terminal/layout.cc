#include "dashboards/terminal/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "dashboards/terminal/bars.h"
#include "dashboards/terminal/text_columns.h"
#include "dashboards/terminal/top_table.h"

namespace headrace::dashboards {
namespace {

using Lines = std::vector<StyledLine>;

constexpr size_t kLabelCells = 8, kMostTextWidth = 100;  // as the report's first page
constexpr double kSecond = 1e9;

// ---------------------------------------------------------------- head

// Pieces of a line, of which those that do not fit are left out from the right, whole.
class HeadLine {
 public:
  explicit HeadLine(size_t width) : width_(width) { line_.Add(" "); }

  HeadLine& Add(const StyledLine& piece) {
    const size_t gap = empty_ ? 0 : 2;
    if (full_ || line_.Columns() + gap + piece.Columns() > width_) {
      full_ = true;
      return *this;
    }
    line_.Add(std::string(gap, ' '));
    for (const StyledText& part : piece.parts) line_.Add(part.text, part.style);
    empty_ = false;
    return *this;
  }
  HeadLine& Add(const std::string& text, TextStyle style = TextStyle::kPlain) {
    return Add(StyledLine().Add(text, style));
  }
  // The first of them that fits; they say the same, the longest first.
  HeadLine& AddFitting(const std::vector<StyledLine>& pieces) {
    for (const StyledLine& piece : pieces) {
      const bool fits = line_.Columns() + (empty_ ? 0 : 2) + piece.Columns() <= width_;
      if (fits || &piece == &pieces.back()) return Add(piece);
    }
    return *this;
  }
  StyledLine Finish() { return std::move(line_); }

 private:
  size_t width_;
  StyledLine line_;
  bool empty_ = true, full_ = false;
};

TextStyle BadgeStyle(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return TextStyle::kGood;
    case Severity::kModerate:
      return TextStyle::kModerate;
    case Severity::kHigh:
      return TextStyle::kHigh;
    case Severity::kNone:
      break;
  }
  return TextStyle::kNeutral;
}

StyledLine StepLine(const TopModel& model, const TopLayout& layout) {
  HeadLine line(layout.width);
  const size_t room = std::max<size_t>(8, layout.width / 4);
  const std::string name = TextColumns(model.name) > room ? FitName(model.name, room) : model.name;
  line.Add(StyledLine().Add(name, TextStyle::kBold).Add(fmt::format(" {}", model.pid)));
  if (model.step_ns) {
    line.Add(StyledLine().Add("step ", TextStyle::kDim).Add(FormatDuration(*model.step_ns)));
  }
  if (model.wait_ratio) {
    line.Add(StyledLine()
                 .Add("WAITS ", TextStyle::kDim)
                 .Add(FormatPercent(*model.wait_ratio), TextStyle::kBold)
                 .Add(" ")
                 .Add(Bar(model.wait_ratio, 6, layout.ascii), TextStyle::kOwnTime));
  }
  if (model.rows_per_s) {
    const std::string rate = FormatRate(*model.rows_per_s, "rows");
    std::vector<StyledLine> pieces;
    if (model.wanted_rows_per_s) {
      const std::string wanted = FormatCount(*model.wanted_rows_per_s);
      pieces.emplace_back().Add(rate, TextStyle::kBold).Add(fmt::format(" of {} wanted", wanted));
      pieces.emplace_back()
          .Add(FormatCount(*model.rows_per_s), TextStyle::kBold)
          .Add(fmt::format(" of {} rows/s", wanted));
    }
    pieces.emplace_back().Add(rate, TextStyle::kBold);
    line.AddFitting(pieces);
  }
  if (model.window_ns == 0) line.Add("no figures yet", TextStyle::kDim);
  return line.Finish();
}

StyledLine CostLine(const TopModel& model, const TopLayout& layout) {
  HeadLine line(layout.width);
  line.Add(
      fmt::format("{} {}", model.state, FormatDuration(static_cast<double>(model.recorded_ns))),
      model.recording ? TextStyle::kPlain : TextStyle::kDim);
  if (model.cores_used) {
    std::string cores = fmt::format("cpu {:.2f}", *model.cores_used);
    if (model.cores_count) cores += fmt::format(" of {:.3g}", *model.cores_count);
    line.Add(cores + " cores");
  }
  if (model.rss_bytes) line.Add("rss " + FormatBytes(*model.rss_bytes));
  line.Add(model.level == 0 ? std::string("from outside") : fmt::format("level {}", model.level));
  if (model.cost_ratio) line.Add("cost " + FormatPercent(*model.cost_ratio));
  if (model.lost_count) line.Add(fmt::format("lost {:.0f}", *model.lost_count));
  line.Add(fmt::format("run {}", model.run_id), TextStyle::kDim);
  return line.Finish();
}

// Which part of the run the figures are about, and which the verdict is.
StyledLine SpanLine(const TopModel& model, const TopState& state, const TopLayout& layout) {
  constexpr int64_t kBehind = 2'000'000'000;
  HeadLine line(layout.width);
  if (state.frozen) line.Add("FROZEN", TextStyle::kWarning);
  const auto time = [](int64_t ns) { return FormatDuration(static_cast<double>(ns)); };
  if (model.window_ns == 0) {
    line.Add(model.recording ? "waiting for its first figures" : "it recorded no figures over time",
             TextStyle::kDim);
  } else if (model.steady) {
    line.Add(fmt::format("steady part, {} to {}", time(model.from_ns), time(model.to_ns)),
             TextStyle::kDim);
  } else {
    line.Add("last " + time(model.window_ns), TextStyle::kDim);
    if (model.ago_ns > kBehind)
      line.Add(fmt::format("{} ago", time(model.ago_ns)), TextStyle::kDim);
  }
  if (model.page && model.verdict_behind_ns > 0) {
    line.Add(
        fmt::format("verdict of the first {}", time(model.recorded_ns - model.verdict_behind_ns)),
        TextStyle::kDim);
  }
  if (state.sort != TopSort::kPipeline) {
    line.Add(fmt::format("by {}", TopSortName(state.sort)), TextStyle::kDim);
  }
  if (!state.filter.empty() && !state.typing) {
    line.Add("filter " + FitName(state.filter, std::min<size_t>(TextColumns(state.filter), 20)),
             TextStyle::kWarning);
  }
  return line.Finish();
}

// ---------------------------------------------------------------- sentences

struct SentenceBlock {
  std::string label;
  Lines lines;
  size_t width = 0;    // of the text of a line
  bool whole = false;  // a command: all of it or nothing
};

constexpr const char* kVerdictBlock = "(verdict)";
constexpr const char* kConditionBlock = "(condition)";

size_t LinesIn(const std::vector<SentenceBlock>& blocks) {
  size_t count = 0;
  for (const SentenceBlock& block : blocks) count += block.lines.size();
  return count;
}

SentenceBlock VerdictBlock(const FirstPage& page, size_t width) {
  SentenceBlock block{kVerdictBlock, {}, width, false};
  const std::string badge = " " + page.badge + " ";
  const size_t indent = TextColumns(badge) + 1;
  const std::vector<std::string> texts =
      WrapColumns(page.verdict, width > indent + 20 ? width - indent : 20);
  for (size_t i = 0; i < texts.size(); ++i) {
    StyledLine& line = block.lines.emplace_back();
    if (i == 0) {
      line.Add(badge, BadgeStyle(page.severity)).Add(" ");
    } else {
      line.Add(std::string(indent, ' '));
    }
    line.Add(texts[i]);
  }
  return block;
}

SentenceBlock LineBlock(const PageLine& page_line, size_t width, bool once) {
  const size_t room = width - kLabelCells;
  SentenceBlock block{page_line.label, {}, room, page_line.command};
  const std::vector<std::string> texts = page_line.command && once
                                             ? std::vector<std::string>{page_line.text}
                                             : WrapColumns(page_line.text, room);
  const TextStyle style = page_line.command            ? TextStyle::kBold
                          : page_line.label == "limit" ? TextStyle::kLimit
                                                       : TextStyle::kPlain;
  for (size_t i = 0; i < texts.size(); ++i) {
    block.lines.emplace_back()
        .Add(fmt::format(" {:<{}}", i == 0 ? page_line.label : "", kLabelCells - 1),
             TextStyle::kDim)
        .Add(texts[i], style);
  }
  return block;
}

std::vector<SentenceBlock> SentenceBlocks(const FirstPage& page, const TopLayout& layout) {
  const size_t width = std::clamp<size_t>(layout.width, 40, kMostTextWidth);
  std::vector<SentenceBlock> blocks = {VerdictBlock(page, width)};
  for (const std::string& condition : page.conditions) {
    SentenceBlock block{kConditionBlock, {}, width - 1, false};
    for (const std::string& text : WrapColumns(condition, width - 1)) {
      block.lines.emplace_back().Add(" ").Add(text, TextStyle::kWarning);
    }
    blocks.push_back(std::move(block));
  }
  for (const PageLine& line : page.lines) {
    // The head has the cost of recording, and the report itself is what "more" names.
    if (line.label == "more") continue;
    blocks.push_back(LineBlock(line, width, layout.once));
  }
  return blocks;
}

void DropBlocks(std::string_view label, std::vector<SentenceBlock>* blocks) {
  std::erase_if(*blocks, [&](const SentenceBlock& block) { return block.label == label; });
}

// Keeps the first lines of a block, of which the last then ends with " ...".
void CutBlock(size_t lines, SentenceBlock* block) {
  constexpr const char* kMore = " ...";
  if (block->lines.size() <= lines) return;
  block->lines.resize(lines);
  StyledText& last = block->lines.back().parts.back();
  const size_t before = block->lines.back().Columns() - TextColumns(last.text);
  const size_t room = block->width + (block->label.starts_with('(') ? 0 : kLabelCells);
  while (before + TextColumns(last.text) + 4 > room) {
    const size_t space = last.text.rfind(' ');
    if (space == std::string::npos) break;
    last.text.resize(space);
  }
  if (before + TextColumns(last.text) + 4 <= room) last.text += kMore;
}

// What a reader misses least goes first, until at most `most` lines are left.
void ShortenSentences(size_t most, std::vector<SentenceBlock>* blocks) {
  for (const char* label : {"cost", "unseen", "basis", "also", "plan"}) {
    if (LinesIn(*blocks) <= most) return;
    DropBlocks(label, blocks);
  }
  for (const size_t kept : {size_t{3}, size_t{2}, size_t{1}}) {
    for (const char* label :
         {"why", "gpu", "but", "check", "next", "limit", "fix", kConditionBlock, kVerdictBlock}) {
      for (SentenceBlock& block : *blocks) {
        const size_t count = LinesIn(*blocks);
        if (block.label != label || block.whole || count <= most) continue;
        const size_t over = count - most, lines = block.lines.size();
        CutBlock(std::max(kept, lines > over ? lines - over : 1), &block);
      }
    }
  }
  for (const char* label : {"but", kConditionBlock, "why", "check"}) {
    if (LinesIn(*blocks) > most) DropBlocks(label, blocks);
  }
  while (blocks->size() > 1 && LinesIn(*blocks) > most) blocks->pop_back();
}

Lines Sentences(const TopModel& model, const TopLayout& layout, size_t most) {
  Lines lines;
  if (!model.page) {
    for (const std::string& text :
         WrapColumns(model.waiting, std::min(layout.width - 1, kMostTextWidth))) {
      lines.emplace_back().Add(" ").Add(text, TextStyle::kDim);
    }
    return lines;
  }
  std::vector<SentenceBlock> blocks = SentenceBlocks(*model.page, layout);
  ShortenSentences(most, &blocks);
  for (SentenceBlock& block : blocks) {
    for (StyledLine& line : block.lines) lines.push_back(std::move(line));
  }
  return lines;
}

// ---------------------------------------------------------------- trends, help, keys

Lines TrendLines(const TopModel& model, const TopLayout& layout) {
  constexpr size_t kTitle = 29, kLast = 18, kMostSpark = 60;
  if (layout.width < kTitle + kLast + 24) return {};
  const size_t cells = std::min(kMostSpark, layout.width - kTitle - kLast - 4);
  Lines lines;
  for (const TopTrend& trend : model.trends) {
    lines.emplace_back()
        .Add(" " + FitName(trend.title, kTitle) + " ", TextStyle::kDim)
        .Add(Spark(trend.course, cells, trend.top, layout.ascii), TextStyle::kOwnTime)
        .Add("  " + trend.last);
  }
  return lines;
}

Lines HelpLines(const TopModel& model, const TopLayout& layout) {
  Lines lines;
  lines.emplace_back().Add(" Keys", TextStyle::kBold);
  const auto add = [&](const std::string& label, const std::string& text) {
    const std::vector<std::string> wrapped = WrapColumns(text, layout.width - 12);
    for (size_t i = 0; i < wrapped.size(); ++i) {
      lines.emplace_back()
          .Add(fmt::format(" {:<10} ", i == 0 ? label : ""), TextStyle::kBold)
          .Add(wrapped[i]);
    }
  };
  for (const KeyHelp& help : KeyHelps()) add(help.key, help.does);
  lines.emplace_back();
  lines.emplace_back().Add(" Columns", TextStyle::kBold);
  add("BUSY",
      "share of the time of the stage's threads in which they work: on core + blocked + "
      "wants");
  add("ON CORE", "on a CPU core; BLOCKED: off it inside an operator; WANTS: ready, no core free");
  add("QUEUE", "how full the queue behind the stage is, and how long it was full or empty");
  add("ALLOWS/S", "batches per second that the stage alone would allow");
  add("WHY IDLE", "no input: it waits for the stage before it; no room: for the one after it");
  if (!model.title.empty()) {
    lines.emplace_back();
    for (const std::string& text : WrapColumns(model.title, layout.width - 1)) {
      lines.emplace_back().Add(" " + text, TextStyle::kDim);
    }
  }
  return lines;
}

StyledLine KeyLine(const TopState& state, const TopLayout& layout) {
  HeadLine line(layout.width);
  if (state.asking) {
    return line.Add("the command still runs", TextStyle::kWarning)
        .Add("e end it", TextStyle::kBold)
        .Add("l leave it", TextStyle::kBold)
        .Add("other keys: back")
        .Finish();
  }
  if (state.typing) {
    const size_t room = layout.width > 40 ? layout.width - 40 : 1;
    const std::string shown =
        TextColumns(state.filter) > room ? FitName(state.filter, room) : state.filter;
    return line.Add(StyledLine().Add("filter: ", TextStyle::kDim).Add(shown + "_"))
        .Add("enter keep")
        .Add("esc clear")
        .Finish();
  }
  const char* const keys[] = {"q quit",          "p freeze",     "s sort", "/ filter",
                              "enter operators", "+ - interval", "? help"};
  for (const char* key : keys) {
    line.Add(state.frozen && std::string_view(key) == "p freeze" ? "p go on" : key,
             TextStyle::kDim);
  }
  return line.Finish();
}

// ---------------------------------------------------------------- the whole

// Head and limit only.
Lines SmallScreen(const TopModel& model, const TopState& state, const TopLayout& layout) {
  Lines lines = {StepLine(model, layout), CostLine(model, layout), SpanLine(model, state, layout)};
  const size_t width = std::max<size_t>(layout.width, 4) - 1;
  const auto add = [&](const std::string& text, TextStyle style) {
    for (const std::string& part : WrapColumns(text, width)) {
      lines.emplace_back().Add(" ").Add(part, style);
    }
  };
  if (!model.page) {
    add(model.waiting, TextStyle::kDim);
    return lines;
  }
  add(model.page->badge, TextStyle::kBold);
  for (const PageLine& line : model.page->lines) {
    if (line.label == "limit") add("limit " + line.text, TextStyle::kLimit);
  }
  return lines;
}

void Append(Lines more, Lines* lines) {
  for (StyledLine& line : more) lines->push_back(std::move(line));
}

// What stands between head and keys, in at most `room` lines.
Lines Body(const TopModel& model, const TopState& state, const TopLayout& layout, size_t room) {
  constexpr size_t kLeastSentences = 7, kLeastForTrends = 36, kLeastTrendWidth = 100;
  if (state.help) return HelpLines(model, layout);
  Lines lines;
  const bool stages = !model.stages.empty();
  const size_t below = std::min(kLeastSentences, room / 2);
  if (stages) {
    Append(StageTable(model, state, layout.width, room - below - 1, layout.ascii), &lines);
  } else {
    Append(UnitTable(model, layout.width, layout.ascii), &lines);
    if (lines.size() > room - below) lines.resize(room - below);
  }
  if (!lines.empty()) lines.emplace_back();
  if (state.operators && stages) {
    Append(OperatorTable(model, state, layout.width, layout.ascii), &lines);
    if (lines.size() > room) lines.resize(room);
    if (lines.size() + 2 < room) lines.emplace_back();
  }
  const size_t left = room > lines.size() ? room - lines.size() : 0;
  if (left > 0) Append(Sentences(model, layout, left), &lines);
  const bool trends =
      layout.width >= kLeastTrendWidth && (layout.height == 0 || layout.height >= kLeastForTrends);
  if (trends && !model.trends.empty() && lines.size() + 1 + model.trends.size() <= room) {
    lines.emplace_back();
    Append(TrendLines(model, layout), &lines);
  }
  return lines;
}

void MakeAscii(Lines* lines) {
  for (StyledLine& line : *lines) {
    for (StyledText& part : line.parts) part.text = InAscii(part.text);
  }
}

}  // namespace

std::vector<StyledLine> LayOutTop(const TopModel& model, const TopState& state,
                                  const TopLayout& layout) {
  constexpr size_t kUnlimited = 1'000, kRoomyHeight = 30;
  const size_t height = layout.height == 0 ? kUnlimited : layout.height;
  const bool small = layout.width < kLeastTopWidth || height < kLeastTopHeight;
  Lines lines;
  if (small) {
    lines = SmallScreen(model, state, layout);
  } else {
    lines = {StepLine(model, layout), CostLine(model, layout), SpanLine(model, state, layout)};
    for (const std::string& note : model.notes) {
      const std::vector<std::string> texts = WrapColumns(note, layout.width - 1);
      for (const std::string& text : texts) {
        lines.emplace_back().Add(" ").Add(text, TextStyle::kWarning);
      }
    }
    if (layout.height == 0 || height >= kRoomyHeight) lines.emplace_back();
    const size_t keys = layout.once ? 0 : 1;
    const size_t head = std::min(lines.size(), height - keys - 8);
    lines.resize(head);
    Append(Body(model, state, layout, height - head - keys), &lines);
  }
  const size_t keys = layout.once || height < 4 ? 0 : 1;
  if (lines.size() > height - keys) lines.resize(height - keys);
  if (!layout.once) lines.resize(height - keys);
  if (keys > 0) lines.push_back(KeyLine(state, layout));
  if (layout.ascii) MakeAscii(&lines);
  return lines;
}

}  // namespace headrace::dashboards
