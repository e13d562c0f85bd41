// A pipeline's cache of batches: splits that it holds skip the operators from `fetch` to the one
// named by [[cache]] after = "...".
//
//   fetch ... transform   a split that is kept: found before fetch, its batches come out behind
//                         transform, with no work in between
//
// Deduplicated features are kept as they are: unique rows and the inverse. Rows of a split that a
// resumed run still wants are read anew and not kept.
#pragma once
#include <memory>

#include "reader/pipeline/cache/batch_cache.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

// The cache of [[cache]]; null without it. `transforms` and `dedup` may be null. Throws Error
// kUsage when a random transform comes before it and allow_random is false.
std::unique_ptr<BatchCache> OpenCache(const PipelineSpec& spec, const Table& table,
                                      const TransformPlan* transforms, const DedupPlan* dedup);

// All that the batches behind `after` depend on: the files' footers, and name, size, time of change
// and last 16 KiB of each; the projection; the deduplicated groups; the transforms, and the seed
// where one of them draws.
uint64_t CacheFingerprint(const PipelineSpec& spec, const Table& table,
                          const TransformPlan* transforms, const DedupPlan* dedup);

// `op` combined with the cache if `plan` says that it is the first or the last of the operators
// that cached splits skip; else `op` unchanged.
std::unique_ptr<Operator> WithCache(const OperatorPlan& plan, const OperatorContext& context,
                                    std::unique_ptr<Operator> op);

}  // namespace headrace::reader
