// CoreadLog: which features jobs read together. `run --log-reads` writes one JSON line for each
// run; `rewrite --order popularity` orders a table's features by it.
//
//   {"schema":"headrace.coread/1","table":"/data/rm1","features":["sparse:17","dense:3"],"weight":1}
#pragma once
#include <map>
#include <string>
#include <vector>

#include "reader/dwrf/projection.h"
#include "reader/pipeline/spec.h"

namespace headrace::workloads {

// Appends one line for a job that ran `spec`. Lines of jobs that end at the same time do not mix.
// Throws Error.
void AppendCoread(const std::string& path, const reader::PipelineSpec& spec);

struct CoreadJob {
  std::vector<std::string> features;  // names as in a batch: "sparse:17"
  double weight = 1;
};
// Throws Error kBadData with the number of a line that is not such an object.
std::vector<CoreadJob> LoadCoread(const std::string& path);

// The features of each map, most read first. Among equally read ones, those that the same jobs read
// are adjacent, then by key. Features that no job reads are left out; a writer puts them last.
std::map<std::string, std::vector<reader::dwrf::MapKey>> PopularOrder(
    const std::vector<CoreadJob>& jobs,
    const std::map<std::string, std::vector<reader::dwrf::MapKey>>& features);

}  // namespace headrace::workloads
