#include "dashboards/serve/run_cache.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

// The key is held twice, and the compressed answer is at most as large as the answer.
size_t HeldBytes(const std::string& key, const CachedAnswer& answer) {
  constexpr size_t kOfNodes = 300;
  return 2 * key.size() + 2 * answer.body.size() + kOfNodes;
}

// Nearly all of a run that was read: its windows, and of one seen from outside the course of its
// threads.
size_t HeldBytes(const analysis::RunView& run) {
  size_t bytes = run.windows.size() * (run.operators.size() * sizeof(analysis::OperatorCounters) +
                                       run.stages.size() * sizeof(analysis::StageCounters) +
                                       run.queues.size() * sizeof(analysis::QueueCounters) +
                                       run.resources.size() * sizeof(analysis::ResourceCounters));
  bytes += run.course.size() * sizeof(analysis::CourseRow);
  bytes += run.measurements.size() * sizeof(analysis::MeasurementRow);
  for (const analysis::StackRow& row : run.stacks) bytes += sizeof(row) + row.folded.size();
  return bytes;
}

}  // namespace

const std::string& CachedAnswer::Gzip() const {
  std::call_once(compressed, [this] { gzip = Gzipped(body); });
  return gzip;
}

RunCache::RunCache(std::string database, std::string program, std::string database_option,
                   CacheRoom room)
    : database_(std::move(database)),
      program_(std::move(program)),
      database_option_(std::move(database_option)),
      room_(room) {}

std::optional<RunVersion> RunCache::VersionOf(collectors::ReadStore& store, int64_t run_id) {
  const collectors::SqlResult run = store.Query(
      "SELECT state, duration_ns, name, tags, (SELECT MAX(run_id) FROM run_summary), (SELECT "
      "COUNT(*) FROM run_summary WHERE state <> 'recording'), (SELECT MAX(calibration_id) FROM "
      "calibration_summary) FROM run_summary WHERE run_id = ?1",
      {run_id});
  if (run.rows.empty()) return std::nullopt;
  std::string all;
  for (const collectors::SqlValue& value : run.rows[0]) all += TextOf(value) + '\n';
  // Hexadecimal, because it goes into headers, and a store may come from anybody.
  return RunVersion{fmt::format("{:016x}", std::hash<std::string>()(all)),
                    TextOf(run.rows[0][0]) == "recording"};
}

std::shared_ptr<const LoadedRun> RunCache::Load(int64_t run_id, const RunVersion& version) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& found = runs_[run_id];
    if (!found) found = std::make_shared<Entry>();
    entry = found;
    recent_.remove(run_id);
    recent_.push_front(run_id);
    if (recent_.size() > room_.runs) {
      runs_.erase(recent_.back());
      recent_.pop_back();
    }
  }
  const std::lock_guard making(entry->making);
  if (entry->loaded) {
    const bool young = MonotonicNs() - entry->made_ns < kReportAgeNs && entry->version.recording &&
                       version.recording;
    if (entry->version.text == version.text || young) return entry->loaded;
  }
  entry->loaded = LoadForPages(database_, std::to_string(run_id),
                               {.program = program_, .database_option = database_option_});
  entry->version = version;
  entry->made_ns = MonotonicNs();
  MakeRoom(*entry, HeldBytes(entry->loaded->run));
  return entry->loaded;
}

// Under the cache's mutex.
size_t RunCache::RunBytes() const {
  size_t all = 0;
  for (const auto& [id, entry] : runs_) all += entry->bytes;
  return all;
}

size_t RunCache::HeldRunBytes() {
  const std::lock_guard lock(mutex_);
  return RunBytes();
}

size_t RunCache::HeldAnswerBytes() {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

// Lets go of the runs that were used longest ago, as long as all together are too large; not of the
// one that was made just now, nor of those that are being made.
void RunCache::MakeRoom(Entry& made, size_t bytes) {
  const std::lock_guard lock(mutex_);
  made.bytes = bytes;
  size_t all = RunBytes();
  for (auto id = recent_.end(); all > room_.run_bytes && id != recent_.begin();) {
    --id;
    const Entry& entry = *runs_[*id];
    if (&entry == &made || entry.bytes == 0) continue;
    all -= entry.bytes;
    runs_.erase(*id);
    id = recent_.erase(id);
  }
}

std::shared_ptr<const CachedAnswer> RunCache::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  answers_.splice(answers_.begin(), answers_, found->second);
  return found->second->second;
}

std::shared_ptr<const CachedAnswer> RunCache::Keep(const std::string& key, std::string body) {
  auto answer = std::make_shared<CachedAnswer>();
  answer->body = std::move(body);
  const std::lock_guard lock(mutex_);
  const size_t bytes = HeldBytes(key, *answer);
  if (index_.contains(key) || bytes > room_.answer_bytes / 4) return answer;
  held_bytes_ += bytes;
  answers_.push_front({key, answer});
  index_[key] = answers_.begin();
  while (held_bytes_ > room_.answer_bytes) {
    held_bytes_ -= HeldBytes(answers_.back().first, *answers_.back().second);
    index_.erase(answers_.back().first);
    answers_.pop_back();
  }
  return answer;
}

}  // namespace headrace::dashboards
