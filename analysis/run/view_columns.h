// The columns of a view's row, read into the members that are named like them.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/run/run_database.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The column of that name, as the member it is read into has it.
void ReadColumn(const ViewRow& row, const char* name, std::string* text);
void ReadColumn(const ViewRow& row, const char* name, int64_t* number);
void ReadColumn(const ViewRow& row, const char* name, bool* set);
void ReadColumn(const ViewRow& row, const char* name, double* real);
void ReadColumn(const ViewRow& row, const char* name, Count* count);
void ReadColumn(const ViewRow& row, const char* name, Real* real);
void ReadColumn(const ViewRow& row, const char* name, std::optional<std::string>* text);

// The counters of an entity: of the run from its summary, of an interval from its interval view.
OperatorCounters ReadOperatorCounters(const ViewRow& row);
StageCounters ReadStageCounters(const ViewRow& row);
QueueCounters ReadQueueCounters(const ViewRow& row);
ResourceCounters ReadResourceCounters(const ViewRow& row);
StepCounters ReadStepCounters(const ViewRow& row);

}  // namespace headrace::analysis
