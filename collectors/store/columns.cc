#include "collectors/store/columns.h"

#include <fmt/format.h>

namespace headrace::collectors {
namespace {

template <typename Sample>
bool InIntervals(const Column<Sample>& column) {
  return column.merge == Merge::kSum;
}

// What becomes of the stored value when `excluded`, as SQLite calls the new one, comes.
template <typename Sample>
std::string Combined(const Column<Sample>& column) {
  const bool is_number = std::holds_alternative<int64_t Sample::*>(column.member);
  if (column.merge == Merge::kLast) {
    return is_number ? fmt::format("excluded.{}", column.name)
                     : fmt::format("COALESCE(excluded.{0}, {0})", column.name);
  }
  return is_number ? fmt::format("{0} + excluded.{0}", column.name)
                   : fmt::format("COALESCE({0} + excluded.{0}, {0}, excluded.{0})", column.name);
}

// An empty text that may change is not known yet; one that names the entity is its name.
void Bind(const std::string& text, Merge merge, Statement* statement) {
  if (merge == Merge::kLast && text.empty()) {
    statement->BindNull();
  } else {
    statement->Bind(std::string_view(text));
  }
}
void Bind(const std::optional<int64_t>& value, Merge, Statement* statement) {
  statement->Bind(value);
}
void Bind(int64_t value, Merge, Statement* statement) { statement->Bind(value); }

bool IsNothing(int64_t value) { return value == 0; }
bool IsNothing(const std::optional<int64_t>& value) { return value.value_or(0) == 0; }
bool IsNothing(const std::string& text) { return text.empty(); }

void Add(int64_t value, Merge merge, int64_t* sum) {
  if (merge == Merge::kSum || merge == Merge::kTotal) *sum += value;
}
void Add(const std::optional<int64_t>& value, Merge merge, std::optional<int64_t>* sum) {
  if (value && (merge == Merge::kSum || merge == Merge::kTotal)) *sum = sum->value_or(0) + *value;
}
void Add(const std::string& text, Merge merge, std::string* sum) {
  if (merge == Merge::kLast && !text.empty()) *sum = text;
}

// "(a, b) VALUES (?1, ?2)" for so many names.
std::string Values(const std::string& names, size_t count) {
  std::string parameters;
  for (size_t i = 1; i <= count; ++i) parameters += fmt::format("{}?{}", i > 1 ? ", " : "", i);
  return fmt::format("({}) VALUES ({})", names, parameters);
}

}  // namespace

template <typename Sample>
std::string UpsertTotals(const EntityTable<Sample>& table) {
  std::string names = fmt::format("run_id, {}", table.key), changes;
  for (const Column<Sample>& column : table.columns) {
    names += fmt::format(", {}", column.name);
    if (column.merge == Merge::kFirst) continue;
    changes += fmt::format("{}{} = {}", changes.empty() ? "" : ", ", column.name, Combined(column));
  }
  return fmt::format("INSERT INTO {} {} ON CONFLICT DO UPDATE SET {}", table.totals,
                     Values(names, table.columns.size() + 2), changes);
}

template <typename Sample>
std::string InsertInterval(const EntityTable<Sample>& table) {
  size_t count = 3;
  for (const Column<Sample>& column : table.columns) count += InIntervals(column);
  return fmt::format(
      "INSERT INTO {} {}", table.intervals,
      Values(fmt::format("run_id, start_ns, {}, {}", table.key, ListSums(table, "{}")), count));
}

template <typename Sample>
void BindTotals(const EntityTable<Sample>& table, const Sample& sample, Statement* statement) {
  for (const Column<Sample>& column : table.columns) {
    std::visit([&](auto member) { Bind(sample.*member, column.merge, statement); }, column.member);
  }
}

template <typename Sample>
void BindInterval(const EntityTable<Sample>& table, const Sample& sample, Statement* statement) {
  for (const Column<Sample>& column : table.columns) {
    if (!InIntervals(column)) continue;
    std::visit([&](auto member) { Bind(sample.*member, column.merge, statement); }, column.member);
  }
}

template <typename Sample>
std::string ListSums(const EntityTable<Sample>& table, const char* format) {
  std::string list;
  for (const Column<Sample>& column : table.columns) {
    if (!InIntervals(column)) continue;
    if (!list.empty()) list += ", ";
    list += fmt::format(fmt::runtime(format), column.name);
  }
  return list;
}

template <typename Sample>
bool IsIdle(const EntityTable<Sample>& table, const Sample& sample) {
  for (const Column<Sample>& column : table.columns) {
    if (!InIntervals(column)) continue;
    if (!std::visit([&](auto member) { return IsNothing(sample.*member); }, column.member))
      return false;
  }
  return true;
}

template <typename Sample>
void AddUp(const EntityTable<Sample>& table, const Sample& sample, Sample* sum) {
  for (const Column<Sample>& column : table.columns) {
    std::visit([&](auto member) { Add(sample.*member, column.merge, &(sum->*member)); },
               column.member);
  }
}

#define HR_INSTANTIATE(Sample)                                                       \
  template std::string UpsertTotals(const EntityTable<Sample>&);                     \
  template std::string InsertInterval(const EntityTable<Sample>&);                   \
  template void BindTotals(const EntityTable<Sample>&, const Sample&, Statement*);   \
  template void BindInterval(const EntityTable<Sample>&, const Sample&, Statement*); \
  template std::string ListSums(const EntityTable<Sample>&, const char*);            \
  template bool IsIdle(const EntityTable<Sample>&, const Sample&);                   \
  template void AddUp(const EntityTable<Sample>&, const Sample&, Sample*);
HR_INSTANTIATE(StageSample)
HR_INSTANTIATE(OperatorSample)
HR_INSTANTIATE(QueueSample)
HR_INSTANTIATE(ResourceSample)
#undef HR_INSTANTIATE

std::string ReplaceRow(const RowTable& table) {
  std::string names = "run_id", parameters = "?";
  for (const RowColumn& column : table.columns) {
    names += std::string(", ") + column.name;
    parameters += ", ?";
  }
  return fmt::format("INSERT OR REPLACE INTO {} ({}) VALUES ({})", table.name, names, parameters);
}

}  // namespace headrace::collectors
