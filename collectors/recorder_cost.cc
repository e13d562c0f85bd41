#include "collectors/recorder_cost.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/instrumentation_cost.h"
#include "probes/process.h"

namespace headrace::collectors {

probes::Measurement Figure(const char* metric, double value) {
  probes::Measurement figure;
  figure.metric = metric;
  figure.value = value;
  return figure;
}

int64_t OwnCost::Written() {
  const auto io = probes::ReadProcessIo(getpid());
  return io ? io->written_call_bytes : 0;
}

void OwnCost::Read(const std::string& database, MeasurementSink* sink) const {
  sink->Add(Figure("collector_cpu_ns", static_cast<double>(CpuNs())));
  if (const auto self = probes::ReadProcessStat(getpid())) {
    sink->Add(Figure("collector_rss_bytes", static_cast<double>(self->rss_bytes)));
  }
  sink->Add(
      Figure("collector_written_bytes", static_cast<double>(Written() - written_begin_bytes)));
  double bytes = 0;
  for (const char* end : {"", "-wal"}) {
    struct stat info;
    if (stat((database + end).c_str(), &info) == 0) bytes += static_cast<double>(info.st_size);
  }
  sink->Add(Figure("store_bytes", bytes));
}

void AccountsCost::Add(const IntervalSample& sample) {
  for (const StageSample& stage : sample.stages) stages_[stage.id] = stage.name;
  for (const OperatorSample& op : sample.operators) {
    visits_ += static_cast<double>(op.enters.value_or(0));
    if (ReceivesHookedBatches(op.kind, stages_[op.stage_id])) {
      hooked_batches_ += static_cast<double>(op.completions);
    }
  }
}

double AccountsCost::CpuNs() const { return InstrumentationNs(visits_, hooked_batches_); }

void PartCosts::Read(int64_t now_ns, MeasurementSink* sink) const {
  sink->BeginRead("collector parts", now_ns);
  for (const auto& [part, ns] : spent_ns_) {
    probes::Measurement m;
    m.metric = "collector_part_ns";
    m.value = static_cast<double>(ns);
    m.labels.subject = part;
    m.course = false;
    sink->Add(m);
  }
  sink->EndRead();
}

Reserve::Reserve(const std::string& database) {
  const std::filesystem::path folder = std::filesystem::absolute(database).parent_path();
  fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0 && posix_fallocate(fd_, 0, 512 << 10) != 0) Release();
}

void Reserve::Release() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace headrace::collectors
