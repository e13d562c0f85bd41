#include "cli/common_options.h"

#include <algorithm>
#include <iterator>

namespace headrace::cli {
namespace {

constexpr CommonOptionEntry kEntries[] = {
    {"--db", kCommon, "FILE", Scope::kEverywhere, "$HEADRACE_DB or ./headrace.db"},
    {"--format", kCommon, "FORMAT"},
    {"--json", kCommon, nullptr, Scope::kEverywhere},
    {"--output", kCommon, "FILE", Scope::kCall},
    {"--force", kCommon, nullptr, Scope::kCall},
    {"--overwrite", kCommon, nullptr, Scope::kCall},
    {"--quiet", kCommon, nullptr, Scope::kEverywhere},
    {"--color", kCommon, "WHEN", Scope::kEverywhere},
    {"--no-pager", kCommon, nullptr, Scope::kEverywhere},
    {"--help", kCommon, nullptr, Scope::kCall},

    {"--endpoint", kRemoteStorage, "URL", Scope::kEverywhere},
    {"--region", kRemoteStorage, "NAME", Scope::kEverywhere},
    {"--keys", kRemoteStorage, "PLACE", Scope::kEverywhere},

    {"--duration", nullptr, "DURATION"},
    {"--step-time", nullptr, "DURATION"},
    {"--older-than", nullptr, "DURATION"},
    {"--since", nullptr, "TIME"},
    {"--until", nullptr, "TIME"},
    {"--memory", nullptr, "SIZE"},
    {"--max-size", nullptr, "SIZE"},
    {"--target", nullptr, "RATE"},
    {"--name", nullptr, "NAME", Scope::kCall},
    {"--compression", nullptr, "NAME"},
    {"--order", nullptr, "NAME"},
    {"--job", nullptr, "NAME"},
    {"--set", nullptr, "KEY=VALUE"},
    {"--plan", nullptr, "FILE"},
    {"--pipeline", nullptr, "FILE"},
    {"--checkpoint", nullptr, "FILE"},
};

}  // namespace

std::span<const CommonOptionEntry> CommonOptions() { return kEntries; }

const CommonOptionEntry* CommonOption(std::string_view name) {
  const auto* const entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                         [&](const auto& e) { return name == e.name; });
  return entry == std::end(kEntries) ? nullptr : entry;
}

}  // namespace headrace::cli
