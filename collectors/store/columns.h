// The tables of entities, made of columns.def: what is stored of a sample, how it adds up, and the
// SQL that does both. A table of totals has one row per entity; its intervals have those columns
// that are sums.
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

// The row of a run.
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

// Calls `use` with each of the tables of entities.
template <typename Use>
void EachTable(Use use) {
  use(kStages);
  use(kOperators);
  use(kQueues);
  use(kResources);
}

// The statement that stores a sample as totals: it adds to what was stored of the entity. Its
// parameters are run_id, the key, then what BindTotals binds.
template <typename Sample>
std::string UpsertTotals(const EntityTable<Sample>& table);
// The statement that stores it as a row of an interval. Its parameters are run_id, start_ns, the
// key, then what BindInterval binds.
template <typename Sample>
std::string InsertInterval(const EntityTable<Sample>& table);
template <typename Sample>
void BindTotals(const EntityTable<Sample>& table, const Sample& sample, Statement* statement);
template <typename Sample>
void BindInterval(const EntityTable<Sample>& table, const Sample& sample, Statement* statement);

// The columns of the intervals that are sums, each as `format` with its name for "{}".
template <typename Sample>
std::string ListSums(const EntityTable<Sample>& table, const char* format);

// Whether nothing of it would add to an interval.
template <typename Sample>
bool IsIdle(const EntityTable<Sample>& table, const Sample& sample);

// Adds what adds up, and takes the newer text where there is one; numbers seen last stay.
template <typename Sample>
void AddUp(const EntityTable<Sample>& table, const Sample& sample, Sample* sum);

}  // namespace headrace::collectors
