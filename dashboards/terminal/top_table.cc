#include "dashboards/terminal/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"
#include "dashboards/terminal/bars.h"
#include "dashboards/terminal/text_columns.h"

namespace headrace::dashboards {
namespace {

constexpr size_t kBarCells = 10, kQueueBarCells = 6;
constexpr size_t kLeastName = 8, kMostName = 24, kThreadsCells = 3;
constexpr int64_t kNearlyNs = 1'000'000'000;
constexpr double kAlwaysBusy = 0.95, kHardlyWaits = 0.02, kMuch = 0.1;
// Operators under a stage that is the limit; more in a wide table.
constexpr size_t kOperators = 2, kOperatorsWide = 3;

// Which columns fit, and how wide those are that share what is left.
struct TableColumns {
  size_t name = kLeastName, threads = kThreadsCells, course = 0;
  bool queue = false, allows = false, idle = false, split = false;
};

// Cells of a column, its separator included.
constexpr size_t kBusyCells = 2 + kBarCells + 1 + 5, kSplitCells = 9 + 9 + 7,
                 kQueueCells = 2 + kQueueBarCells + 1 + 5 + 1 + 5, kAllowsCells = 2 + 9,
                 kIdleCells = 2 + 8, kLeastCourse = 10, kMostCourse = 60;

// `text` of `value`, or fewer digits where that is too long for `cells`: no store is trusted to
// hold numbers that make sense.
std::string InCells(std::string text, double value, size_t cells) {
  if (!std::isfinite(value)) return "-";
  return TextColumns(text) <= cells ? text : fmt::format("{:.0e}", value);
}

std::string ThreadsText(const TopStage& stage) {
  if (!stage.threads_count) return "-";
  return InCells(fmt::format("{:.0f}", *stage.threads_count), *stage.threads_count, 6);
}

size_t WantedName(const TopModel& model, const std::vector<size_t>& shown, size_t operators) {
  size_t wanted = TextColumns("trainer");
  const auto fit = [&](const std::string& name, size_t indent) {
    wanted = std::max(wanted, TextColumns(name) + indent);
  };
  for (const size_t s : shown) {
    const TopStage& stage = model.stages[s];
    fit(stage.name, 0);
    if (!stage.limit) continue;
    for (size_t i = 0; i < std::min(operators, stage.operators.size()); ++i) {
      const size_t cells = TextColumns(stage.operators[i].name) + 2, beside = 1 + kThreadsCells;
      wanted = std::max(wanted, cells > beside ? cells - beside : 0);  // see RowLine
    }
  }
  for (const TopResource& resource : model.resources) fit(resource.name, 0);
  return std::clamp(wanted, kLeastName, kMostName);
}

TableColumns ChooseColumns(const TopModel& model, const std::vector<size_t>& shown, size_t width,
                           size_t operators) {
  TableColumns columns;
  for (const size_t s : shown) {
    columns.threads = std::max(columns.threads, ThreadsText(model.stages[s]).size());
  }
  const size_t wanted = WantedName(model, shown, operators);
  const size_t least = std::min<size_t>(wanted, 12);
  size_t used =
      1 + least + 1 + columns.threads + kBusyCells;  // the mark and the blank before threads
  const auto take = [&](size_t cells, bool* fits) {
    *fits = used + cells <= width;
    if (*fits) used += cells;
    return *fits;
  };
  bool course = false;
  (void)(take(kQueueCells, &columns.queue) && take(kAllowsCells, &columns.allows) &&
         take(kIdleCells, &columns.idle) && take(kSplitCells, &columns.split) &&
         take(2 + kLeastCourse, &course));
  size_t left = width > used ? width - used : 0;
  columns.name = least + std::min(left, wanted - least);
  left -= columns.name - least;
  if (course) columns.course = std::min(kLeastCourse + left, kMostCourse);
  return columns;
}

// One row of the table, before it is cut to the columns.
struct TableRow {
  std::string name, threads;
  TopShares shares;
  std::string queue_bar, queue;
  std::optional<double> allows;
  std::string idle;
  const TimeCourse* course = nullptr;
  bool limit = false, selected = false, inner = false;
  std::optional<size_t> stage;  // place among those shown
};

std::string QueueWords(const TopQueue& queue) {
  const double full = queue.full.value_or(0), empty = queue.empty.value_or(0);
  if (!queue.fill && !queue.full && !queue.empty) return "-";
  if (full >= 0.5 && full >= empty) return "full  " + PercentCell(full);
  if (empty >= 0.5) return "empty " + PercentCell(empty);
  return "fill  " + PercentCell(queue.fill);
}

std::string WhyIdle(const TopShares& shares) {
  if (!shares.busy) return "-";
  const double wait_in = shares.wait_in.value_or(0), wait_out = shares.wait_out.value_or(0);
  if (*shares.busy > kAlwaysBusy || wait_in + wait_out < kHardlyWaits) return "-";
  return wait_in >= wait_out ? "no input" : "no room";
}

class RowMaker {
 public:
  RowMaker(const TopModel& model, const TopState& state, std::vector<size_t> shown,
           size_t operators, bool ascii)
      : model_(model),
        state_(state),
        shown_(std::move(shown)),
        operators_(operators),
        ascii_(ascii) {}

  std::vector<TableRow> Make() {
    for (size_t i = 0; i < shown_.size(); ++i) AddStage(i);
    AddTrainer();
    AddResources();
    return std::move(rows_);
  }

 private:
  void AddStage(size_t place) {
    const TopStage& stage = model_.stages[shown_[place]];
    TableRow& row = rows_.emplace_back();
    row.name = stage.name;
    row.threads = ThreadsText(stage);
    row.shares = stage.shares;
    if (stage.queue) {
      row.queue_bar = Bar(stage.queue->fill, kQueueBarCells, ascii_);
      row.queue = QueueWords(*stage.queue);
    }
    row.allows = stage.allows;
    row.idle = WhyIdle(stage.shares);
    row.course = &stage.busy;
    row.limit = stage.limit;
    row.selected = state_.selecting && place == state_.selected;
    row.stage = place;
    if (!stage.limit) return;
    for (size_t i = 0; i < std::min(operators_, stage.operators.size()); ++i) {
      const TopOperator& op = stage.operators[i];
      if (op.shares.busy.value_or(0) <= 0 || stage.operators.size() < 2) continue;
      TableRow& inner = rows_.emplace_back();
      inner.name = op.name;
      inner.shares = op.shares;
      inner.inner = true;
      inner.stage = place;
    }
  }

  void AddTrainer() {
    if (!model_.trainer || !state_.filter.empty()) return;
    TableRow& row = rows_.emplace_back();
    row.name = "trainer";
    row.shares.busy = model_.trainer->busy;
    row.queue = "computes the rest";
    row.allows = model_.trainer->allows;
    if (model_.wait_ratio) row.idle = *model_.wait_ratio < kHardlyWaits ? "-" : "no input";
    row.course = &model_.trainer->busy_course;
    row.limit = model_.trainer->limit;
  }

  // The two that allow least: what they allow is shown beside the stages.
  void AddResources() {
    constexpr size_t kMost = 2;
    if (!state_.filter.empty()) return;
    for (size_t i = 0; i < std::min(kMost, model_.resources.size()); ++i) {
      const TopResource& resource = model_.resources[i];
      TableRow& row = rows_.emplace_back();
      row.name = resource.name;
      row.shares.busy = std::min(1.0, resource.used_ratio);
      row.queue = "of what it allows";
      row.allows = resource.allows;
      row.limit = resource.limit;
    }
  }

  const TopModel& model_;
  const TopState& state_;
  std::vector<size_t> shown_;
  size_t operators_;
  bool ascii_;
  std::vector<TableRow> rows_;
};

StyledLine Header(const TopModel& model, const TableColumns& columns) {
  const char* busy = "BUSY";
  StyledLine line;
  std::string text = " " + FitName("STAGE", columns.name) + " " +
                     RightAlign("THR", columns.threads) + "  " + FitName(busy, kBusyCells - 2);
  if (columns.split) text += "  ON CORE  BLOCKED  WANTS";
  if (columns.queue) text += "  " + FitName("OUTPUT QUEUE", kQueueCells - 2);
  if (columns.allows) text += "   ALLOWS/S";
  if (columns.idle) text += "  WHY IDLE";
  if (columns.course > 0) {
    const bool whole = !model.recording && model.history_ns + kNearlyNs > model.recorded_ns;
    const std::string span =
        whole ? "BUSY, WHOLE RUN"
              : fmt::format("BUSY, LAST {:.0f} s", static_cast<double>(model.history_ns) * 1e-9);
    text += "  " + FitName(TextColumns(span) <= columns.course ? span : "BUSY", columns.course);
  }
  return line.Add(text, TextStyle::kDim);
}

StyledLine RowLine(const TableRow& row, const TableColumns& columns, bool ascii) {
  StyledLine line;
  line.selected = row.selected;
  const TextStyle name_style = row.limit   ? TextStyle::kLimit
                               : row.inner ? TextStyle::kDim
                                           : TextStyle::kPlain;
  line.Add(!row.limit ? " " : ascii ? ">" : "▶", row.limit ? TextStyle::kLimit : TextStyle::kPlain);
  if (row.inner) {  // an operator has no threads of its own: its name may have their cells
    line.Add("  " + FitName(row.name, columns.name - 1 + columns.threads) + "  ", name_style);
  } else {
    line.Add(FitName(row.name, columns.name), name_style);
    line.Add(" " + RightAlign(row.threads, columns.threads) + "  ");
  }
  line.Add(Bar(row.shares.busy, kBarCells, ascii), TextStyle::kOwnTime);
  line.Add(" ").Add(PercentCell(row.shares.busy), row.limit ? TextStyle::kBold : TextStyle::kPlain);
  const bool split = row.shares.on_core || row.shares.blocked || row.shares.wants;
  if (columns.split) {
    const bool wants = row.shares.wants.value_or(0) > kMuch;
    const bool told = split || row.stage;
    line.Add("  " + RightAlign(told ? PercentCell(row.shares.on_core) : "", 7));
    line.Add("  " + RightAlign(told ? PercentCell(row.shares.blocked) : "", 7));
    line.Add("  " + RightAlign(told ? PercentCell(row.shares.wants) : "", 5),
             wants ? TextStyle::kWants : TextStyle::kPlain);
  }
  if (columns.queue) {
    line.Add("  ");
    if (row.queue_bar.empty()) {
      line.Add(FitName(row.queue, kQueueCells - 2), TextStyle::kDim);
    } else {
      line.Add(row.queue_bar, TextStyle::kOwnTime).Add(" ");
      line.Add(FitName(row.queue, kQueueCells - 3 - kQueueBarCells));
    }
  }
  if (columns.allows) {
    const std::string allows =
        row.allows ? InCells(FormatCount(*row.allows), *row.allows, kAllowsCells - 2)
                   : (row.inner ? "" : "-");
    line.Add("  " + RightAlign(allows, kAllowsCells - 2),
             row.limit ? TextStyle::kLimit : TextStyle::kPlain);
  }
  if (columns.idle) line.Add("  " + FitName(row.idle, kIdleCells - 2));
  if (columns.course > 0 && row.course != nullptr) {
    line.Add("  ").Add(Spark(*row.course, columns.course, 1, ascii), TextStyle::kOwnTime);
  }
  return line;
}

// The rows that are kept where not all fit: around the one that matters most.
std::pair<size_t, size_t> KeptRows(const std::vector<TableRow>& rows, size_t room) {
  if (rows.size() <= room) return {0, rows.size()};
  size_t centre = 0;
  for (size_t i = rows.size(); i-- > 0;) {
    if (rows[i].limit) centre = i;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].selected) centre = i;
  }
  const size_t before = room / 3;
  const size_t first = std::min(centre > before ? centre - before : 0, rows.size() - room);
  return {first, first + room};
}

// Names are of any length; the longest one's width, or what fits.
size_t NameCells(const std::vector<TopOperator>& operators) {
  size_t cells = TextColumns("OPERATOR");
  for (const TopOperator& op : operators) cells = std::max(cells, TextColumns(op.name));
  return std::clamp(cells, kLeastName, size_t{32});
}

std::string OrDash(const std::optional<double>& value, size_t cells, std::string (*words)(double)) {
  return value ? InCells(words(*value), *value, cells) : "-";
}

bool Contains(const std::string& text, const std::string& part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace

std::vector<size_t> ShownStages(const TopModel& model, const TopState& state) {
  std::vector<size_t> shown;
  for (size_t s = 0; s < model.stages.size(); ++s) {
    const TopStage& stage = model.stages[s];
    const bool wanted =
        state.filter.empty() || Contains(stage.name, state.filter) ||
        std::any_of(stage.operators.begin(), stage.operators.end(),
                    [&](const TopOperator& op) { return Contains(op.name, state.filter); });
    if (wanted) shown.push_back(s);
  }
  const auto sort = [&](const auto& less) {
    std::stable_sort(shown.begin(), shown.end(),
                     [&](size_t a, size_t b) { return less(model.stages[a], model.stages[b]); });
  };
  switch (state.sort) {
    case TopSort::kPipeline:
      break;
    case TopSort::kBusy:
      sort([](const TopStage& a, const TopStage& b) {
        return a.shares.busy.value_or(-1) > b.shares.busy.value_or(-1);
      });
      break;
    case TopSort::kAllows:
      sort([](const TopStage& a, const TopStage& b) {
        return a.allows.value_or(HUGE_VAL) < b.allows.value_or(HUGE_VAL);
      });
      break;
    case TopSort::kName:
      sort([](const TopStage& a, const TopStage& b) { return a.name < b.name; });
      break;
  }
  return shown;
}

std::vector<StyledLine> StageTable(const TopModel& model, const TopState& state, size_t width,
                                   size_t height, bool ascii) {
  constexpr size_t kWide = 110;
  const std::vector<size_t> shown = ShownStages(model, state);
  const size_t operators = width >= kWide ? kOperatorsWide : kOperators;
  const TableColumns columns = ChooseColumns(model, shown, width, operators);
  std::vector<TableRow> rows = RowMaker(model, state, shown, operators, ascii).Make();
  std::vector<StyledLine> lines = {Header(model, columns)};
  size_t room = std::max<size_t>(height, 3) - 1;
  if (rows.size() > room) --room;  // for the line that says so
  const auto [first, last] = KeptRows(rows, room);
  for (size_t i = first; i < last; ++i) lines.push_back(RowLine(rows[i], columns, ascii));
  if (last - first < rows.size()) {
    const size_t more = rows.size() - (last - first);
    lines.emplace_back().Add(fmt::format("  ({} more line{}: a higher terminal, or / to filter)",
                                         more, more == 1 ? "" : "s"),
                             TextStyle::kDim);
  }
  if (shown.empty() && !state.filter.empty()) {
    lines.emplace_back().Add("  no stage or operator has this in its name", TextStyle::kDim);
  }
  return lines;
}

std::vector<StyledLine> OperatorTable(const TopModel& model, const TopState& state, size_t width,
                                      bool ascii) {
  const std::vector<size_t> shown = ShownStages(model, state);
  if (shown.empty()) return {};
  const TopStage& stage = model.stages[shown[std::min(state.selected, shown.size() - 1)]];
  const size_t name = NameCells(stage.operators);
  struct Cell {
    const char* title;
    size_t cells;
  };
  // Those on the right are left out first.
  const Cell cells[] = {{"ON CORE", 7},   {"BLOCKED", 7},     {"WANTS", 5},       {"WAITS IN", 8},
                        {"WAITS OUT", 9}, {"AN ELEMENT", 10}, {"ELEMENTS/S", 10}, {"ROWS/S", 9},
                        {"IN", 10},       {"OUT", 10}};
  size_t used = 1 + std::min(name, width > 30 ? width - 30 : kLeastName) + kBusyCells;
  const size_t name_cells = used - 1 - kBusyCells;
  size_t columns = 0;
  while (columns < std::size(cells) && used + 2 + cells[columns].cells <= width) {
    used += 2 + cells[columns++].cells;
  }
  std::vector<StyledLine> lines;
  std::string header =
      " " + FitName("OPERATOR", name_cells) + "  " + FitName("BUSY", kBusyCells - 2);
  for (size_t i = 0; i < columns; ++i) {
    header += "  " + RightAlign(cells[i].title, cells[i].cells);
  }
  lines.emplace_back()
      .Add(" operators of ", TextStyle::kDim)
      .Add(FitName(stage.name, std::min(TextColumns(stage.name), width > 50 ? width - 50 : 10)),
           TextStyle::kBold)
      .Add(", shares of its threads' time", TextStyle::kDim);
  lines.emplace_back().Add(header, TextStyle::kDim);
  for (const TopOperator& op : stage.operators) {
    StyledLine& line = lines.emplace_back();
    line.Add(" " + FitName(op.name, name_cells) + "  ");
    line.Add(Bar(op.shares.busy, kBarCells, ascii), TextStyle::kOwnTime);
    line.Add(" " + PercentCell(op.shares.busy));
    const std::string texts[] = {PercentCell(op.shares.on_core),
                                 PercentCell(op.shares.blocked),
                                 PercentCell(op.shares.wants),
                                 PercentCell(op.shares.wait_in),
                                 PercentCell(op.shares.wait_out),
                                 OrDash(op.element_ns, 10, FormatDuration),
                                 OrDash(op.elements_per_s, 10, FormatCount),
                                 OrDash(op.rows_per_s, 9, FormatCount),
                                 OrDash(op.bytes_in_per_s, 10, FormatBytesRate),
                                 OrDash(op.bytes_out_per_s, 10, FormatBytesRate)};
    for (size_t i = 0; i < columns; ++i) line.Add("  " + RightAlign(texts[i], cells[i].cells));
  }
  return lines;
}

std::vector<StyledLine> UnitTable(const TopModel& model, size_t width, bool ascii) {
  if (model.units.empty()) return {};
  constexpr size_t kRole = 8, kWaits = 20;
  const size_t fixed = 1 + 2 + kRole + kBusyCells + 2 + 6;
  const bool waits = width >= fixed + 16 + 2 + kWaits;
  size_t name = 16;
  for (const TopUnit& unit : model.units) name = std::max(name, TextColumns(unit.name));
  const size_t room = width - std::min(width, fixed + (waits ? 2 + kWaits : 0));
  name = std::min(name, std::max(room, kLeastName));
  // Those that work for the trainer, and few of the others: a shell script starts many.
  constexpr size_t kMostIdle = 3;
  std::vector<const TopUnit*> shown, idle;
  for (const TopUnit& unit : model.units) {
    (unit.role == "idle" ? idle : shown).push_back(&unit);
  }
  const size_t more = idle.size() - std::min(idle.size(), kMostIdle);
  shown.insert(shown.end(), idle.begin(), idle.end() - static_cast<std::ptrdiff_t>(more));
  std::vector<StyledLine> lines;
  lines.emplace_back().Add(" " + FitName("THREADS", name) + "  " + FitName("ROLE", kRole) + "  " +
                               FitName("ON CORE", kBusyCells - 2) + "   WANTS" +
                               (waits ? "  WAITS MOST FOR" : ""),
                           TextStyle::kDim);
  for (const TopUnit* each : shown) {
    const TopUnit& unit = *each;
    StyledLine& line = lines.emplace_back();
    line.Add(" " + FitName(unit.name, name) + "  " + FitName(unit.role, kRole) + "  ");
    line.Add(Bar(unit.on_core, kBarCells, ascii), TextStyle::kOwnTime);
    line.Add(" " + PercentCell(unit.on_core));
    line.Add("   " + PercentCell(unit.wants),
             unit.wants > kMuch ? TextStyle::kWants : TextStyle::kPlain);
    if (waits && !unit.waits_for.empty()) {
      line.Add("  " + FitName(unit.waits_for, 12) + " " + PercentCell(unit.waits));
    }
  }
  if (more > 0) {
    lines.emplace_back().Add(fmt::format("  ({} more kinds of idle threads)", more),
                             TextStyle::kDim);
  }
  return lines;
}

}  // namespace headrace::dashboards
