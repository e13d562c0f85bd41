// What the page of a plan says of caches: which output to keep between epochs, or why none, and
// what each stage and tier would be worth alone.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/model/pipeline_model.h"
#include "analysis/program/allocation.h"
#include "analysis/program/cache_choice.h"

namespace headrace::dashboards {

struct CachePage {
  const analysis::PipelineModel& model;
  const analysis::Allocation& plan;
  const analysis::CacheQuestion& question;
  const analysis::CacheChoice& choice;
  double epoch_rows = 0;  // as asked
};

// The first lines of a plan: what to keep and what goes into the pipeline file, or why nothing.
std::string CacheVerdictText(const CachePage& page);
// Every stage and tier, with the rest of the pipeline as it is.
std::string CacheTableText(const CachePage& page);

// The caches that are planned, as an array: where, how much, with which budget.
nlohmann::ordered_json PlannedCachesJson(const CachePage& page);
// Sets in `settings` what makes `headrace run --plan` keep the cache; nothing where it cannot.
void PutCacheSettings(const CachePage& page, nlohmann::ordered_json* settings);
// The object "cache": the question, and every stage and tier that was looked at.
nlohmann::ordered_json CacheJson(const CachePage& page);

}  // namespace headrace::dashboards
