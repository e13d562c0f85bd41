#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/cache/options.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

void ParseCache(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["cache"];
  if (!node) return;
  const std::vector<SpecValue> caches = node.Items();
  if (caches.empty() || !caches[0].is_table())
    node.Fail("a cache is written [[cache]], with after = \"extract\", rowmap or transform");
  if (caches.size() > 1)
    caches[1].Fail(
        "a pipeline has one [[cache]]: splits that the later one holds never come by the "
        "earlier, whose room is better the later one's; leave out one of the two");
  const SpecValue table = caches[0].Called("cache");  // as a setting names it
  table.CheckKeys("[[cache]]", {"after", "tier", "budget", "folder", "allow_random"});
  CacheOptions& cache = spec->cache;
  cache.after = table.Text("after", "");
  const std::vector<std::string> places = {"extract", "rowmap", "transform"};
  const bool is_there = HasOperator(*spec, cache.after);
  if (std::find(places.begin(), places.end(), cache.after) == places.end() || !is_there) {
    table["after"].Fail(
        fmt::format("a cache comes after extract, rowmap or transform, whichever the pipeline "
                    "has, not after '{}'{}",
                    Printable(cache.after, 40), is_there ? "" : DidYouMean(cache.after, places)));
  }
  cache.tier = table.IsSecond("tier", "memory", "disk") ? CacheTier::kDisk : CacheTier::kMemory;
  cache.budget_bytes = table.Bytes("budget", cache.budget_bytes);
  const std::string folder = table.Text("folder", "");
  if (!folder.empty()) cache.folder = table.Path(folder);
  if ((cache.tier == CacheTier::kDisk) != !cache.folder.empty())
    (folder.empty() ? node : table["folder"])
        .Fail("tier = \"disk\" and folder = \"...\" go together");
  cache.allow_random = table.Flag("allow_random", false);
}

}  // namespace headrace::reader
