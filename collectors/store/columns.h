// The tables of entities, generated from columns.def: what is stored of a sample, how samples add
// up, and the SQL for both. A table of totals has one row per entity; its table of intervals has
// only the columns that are sums.
#pragma once
#include <span>
#include <string>
#include <variant>

#include "collectors/store/samples.h"
#include "collectors/store/statement.h"

namespace headrace::collectors {

enum class Merge { kFirst, kLast, kSum, kTotal };  // see columns.def

template <typename Sample>
struct Column {
  const char* name;
  Merge merge;
  std::variant<int64_t Sample::*, std::optional<int64_t> Sample::*, std::string Sample::*> member;
  const char* help;
};

template <typename Sample>
struct EntityTable {
  const char* totals;  // name of the table
  const char* intervals;
  const char* key;  // the entity's number within the run
  std::span<const Column<Sample>> columns;
};

inline constexpr Column<StageSample> kStageColumns[] = {
#define HR_STAGE_COLUMN(type, member, column, merge, help) \
  {#column, Merge::merge, &StageSample::member, help},
#include "collectors/store/columns.def"
};
inline constexpr Column<OperatorSample> kOperatorColumns[] = {
#define HR_OPERATOR_COLUMN(type, member, column, merge, help) \
  {#column, Merge::merge, &OperatorSample::member, help},
#include "collectors/store/columns.def"
};
inline constexpr Column<QueueSample> kQueueColumns[] = {
#define HR_QUEUE_COLUMN(type, member, column, merge, help) \
  {#column, Merge::merge, &QueueSample::member, help},
#include "collectors/store/columns.def"
};
inline constexpr Column<ResourceSample> kResourceColumns[] = {
#define HR_RESOURCE_COLUMN(type, member, column, merge, help) \
  {#column, Merge::merge, &ResourceSample::member, help},
#include "collectors/store/columns.def"
};

inline constexpr EntityTable<StageSample> kStages = {"stages", "stage_intervals", "stage_id",
                                                     kStageColumns};
inline constexpr EntityTable<OperatorSample> kOperators = {"operators", "operator_intervals",
                                                           "operator_id", kOperatorColumns};
inline constexpr EntityTable<QueueSample> kQueues = {"queues", "queue_intervals", "queue_id",
                                                     kQueueColumns};
inline constexpr EntityTable<ResourceSample> kResources = {"resources", "resource_intervals",
                                                           "resource_id", kResourceColumns};

// The columns of a run's row.
struct RunColumn {
  const char* name;
  const char* help;
};
inline constexpr RunColumn kRunColumns[] = {
#define HR_RUN_COLUMN(type, column, help) {#column, help},
#include "collectors/store/columns.def"
};
inline constexpr RunColumn kConditionColumns[] = {
#define HR_CONDITION_COLUMN(type, read, column, unset, help) {#column, help},
#include "collectors/store/columns.def"
};

// Rows that are written whole. A table's key is run_id and the first of its columns, or more.
struct RowColumn {
  const char* name;
  const char* help;
};
struct RowTable {
  const char* name;
  std::span<const RowColumn> columns;
};
inline constexpr RowColumn kProcessColumns[] = {
#define HR_PROCESS_COLUMN(type, member, column, help) {#column, help},
#include "collectors/store/columns.def"
};
inline constexpr RowColumn kDecisionColumns[] = {
#define HR_DECISION_COLUMN(type, member, column, help) {#column, help},
#include "collectors/store/columns.def"
};
inline constexpr RowColumn kStoreProbeColumns[] = {
#define HR_STORE_PROBE_COLUMN(type, member, column, help) {#column, help},
#include "collectors/store/columns.def"
};
inline constexpr RowTable kProcesses = {"processes", kProcessColumns};
inline constexpr RowTable kDecisions = {"decisions", kDecisionColumns};
inline constexpr RowTable kStoreProbes = {"store_probes", kStoreProbeColumns};
inline constexpr const RowTable* kRowTables[] = {&kProcesses, &kDecisions, &kStoreProbes};

// The statement that writes a row, in place of one with the same key. Its parameters are run_id and
// the columns in their order.
std::string ReplaceRow(const RowTable& table);

// Calls `use` with each of the tables of entities.
template <typename Use>
void EachTable(Use use) {
  use(kStages);
  use(kOperators);
  use(kQueues);
  use(kResources);
}

// The statement that adds a sample to the stored totals of its entity. Its parameters are run_id,
// the key, then what BindTotals binds.
template <typename Sample>
std::string UpsertTotals(const EntityTable<Sample>& table);
// The statement that stores a sample as a row of an interval. Its parameters are run_id, start_ns,
// the key, then what BindInterval binds.
template <typename Sample>
std::string InsertInterval(const EntityTable<Sample>& table);
template <typename Sample>
void BindTotals(const EntityTable<Sample>& table, const Sample& sample, Statement* statement);
template <typename Sample>
void BindInterval(const EntityTable<Sample>& table, const Sample& sample, Statement* statement);

// The interval columns that are sums, each written as `format` with its name in place of "{}".
template <typename Sample>
std::string ListSums(const EntityTable<Sample>& table, const char* format);

// Whether the sample would add nothing to an interval.
template <typename Sample>
bool IsIdle(const EntityTable<Sample>& table, const Sample& sample);

// Adds `sample` to `sum`: sums add up; a newer text, if not empty, replaces the older one; kLast
// numbers are not changed.
template <typename Sample>
void AddUp(const EntityTable<Sample>& table, const Sample& sample, Sample* sum);

}  // namespace headrace::collectors
