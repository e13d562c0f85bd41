#include "analysis/run/known_loaders.h"

#include <fmt/format.h>

#include <string_view>

namespace headrace::analysis {
namespace {

constexpr const char* kTfDataPool = "options.threading.private_threadpool_size";

// `loader` is a DataLoader without workers.
constexpr KnownLoader kKnownLoaders[] = {
    {"workers", "num_workers", "process", "processes"},
    {"pin_memory", "", "thread", "threads", nullptr, nullptr, nullptr, nullptr, false,
     "One thread copies every batch into pinned memory. Let the dataset return fewer bytes, as "
     "uint8 instead of float32, and convert them on the GPU; or try pin_memory=False."},
    {"loader", "num_workers", "thread", "threads", nullptr, nullptr, nullptr, nullptr, true},
    {"Pool", "Pool processes", "process", "processes", nullptr, nullptr, nullptr, nullptr, false,
     nullptr, true},
    {"ThreadPool", "ThreadPool processes", "thread", "threads"},
    {"ProcessPoolExecutor", "ProcessPoolExecutor max_workers", "process", "processes", nullptr,
     nullptr, nullptr, nullptr, false, nullptr, true},
    {"ThreadPoolExecutor", "ThreadPoolExecutor max_workers", "thread", "threads"},
    {"ThreadPoolExecutor-*", "ThreadPoolExecutor max_workers", "thread", "threads"},
    {"tf.data", "num_parallel_calls", "parallel call", "parallel calls",
     "num_parallel_calls={} and prefetch(tf.data.AUTOTUNE)", nullptr, kTfDataPool, "prefetch"},
    {"tf.data after *", "num_parallel_calls", "parallel call", "parallel calls",
     "num_parallel_calls={} and prefetch(tf.data.AUTOTUNE) at the end", "tf.data ", kTfDataPool,
     "prefetch"},
    {"tf.data TFRecordDataset", "num_parallel_reads", "parallel read", "parallel reads", nullptr,
     "tf.data ", kTfDataPool, "prefetch"},
    {"tf.data TextLineDataset", "num_parallel_reads", "parallel read", "parallel reads", nullptr,
     "tf.data ", kTfDataPool, "prefetch"},
    {"tf.data interleave", "num_parallel_calls", "parallel call", "parallel calls", nullptr,
     "tf.data ", kTfDataPool, "prefetch", false,
     "interleave() asks as many sources at once as its cycle_length says, and one after the other "
     "without num_parallel_calls. Raise both, or make what a source does cheaper."},
    {"tf.data *", "num_parallel_calls", "parallel call", "parallel calls", nullptr, "tf.data ",
     kTfDataPool, "prefetch"},
    {"ray.data collate", "", "thread", "threads", nullptr, nullptr, nullptr, nullptr, false,
     "Threads of the trainer's process run collate_fn, Python code in turn. Move what it computes "
     "into map_batches(), which runs in processes of its own."},
    {"ray.data *", "concurrency", "process", "processes", nullptr, "ray.data "},
};
constexpr KnownLoader kAnyStage = {"", "", "thread", "threads"};

}  // namespace

const KnownLoader* FindKnownLoader(const RunView& run, const std::string& stage) {
  if (!run.run.pipeline_path.empty()) return nullptr;
  for (const KnownLoader& known : kKnownLoaders) {
    std::string_view name = known.stage;
    const bool any = name.ends_with('*');
    if (any) name.remove_suffix(1);
    if (any ? stage.starts_with(name) : stage == name) return &known;
  }
  return nullptr;
}

bool IsProcessPool(const RunView& run, const std::string& stage) {
  const KnownLoader* known = FindKnownLoader(run, stage);
  return known != nullptr && known->is_process_pool;
}

std::string WorkersOfStage(const RunView& run, const std::string& stage, int count) {
  const KnownLoader* known = FindKnownLoader(run, stage);
  if (known == nullptr) known = &kAnyStage;
  return fmt::format("{} {}", count, count == 1 ? known->unit : known->unit_many);
}

}  // namespace headrace::analysis
