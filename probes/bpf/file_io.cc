// What operators bring into the page cache.
#include <unistd.h>

#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class FileIoProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    program_.Optional("on_delete");
    program_.SetConstant("page_bytes", static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    ended_.ForEach(program_, "adds", sink, [&](const Record& key, const Record& value, Sink& out) {
      Measurement m = OfOperator(key);
      const auto add = [&](std::string_view metric, const char* member) {
        m.metric = metric;
        m.value = static_cast<double>(value.Number(member));
        out.Add(m);
      };
      add("page_cache_added_bytes", "added_bytes");
      // What is still in the cache, or was taken for want of memory, may have been read or not.
      if (value.Number("dropped_bytes") == 0) return;
      add("page_cache_dropped_bytes", "dropped_bytes");
      add("readahead_unused_bytes", "unused_bytes");
    });
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  Program program_{"file_io"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
};

HR_PROBE("file reads",
         {.summary = "bytes brought into the page cache by operator, and left unread when they are "
                     "dropped (mm_filemap_add_to_page_cache, mm_filemap_delete_from_page_cache)",
          .affects = "bytes each operator brought in from devices; read-ahead waste",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check = [](const Host& host) { return CheckBpf(host); },
          .make = [] { return std::make_unique<FileIoProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
