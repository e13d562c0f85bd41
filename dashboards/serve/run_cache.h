// What was made of runs lately: reports, and answers as they were sent, as long as there is room
// and nothing changes. What is said of a finished run depends on other runs, too: those of the same
// work, and what the machine was measured to give.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {

// An answer, and the same compressed once somebody asked for that.
struct CachedAnswer {
  std::string body;
  mutable std::once_flag compressed;
  mutable std::string gzip;

  // Thread-safe.
  const std::string& Gzip() const;
};

// Which state of a run an answer is of: another one once something is recorded of it, and once runs
// or calibrations are added to the store.
struct RunVersion {
  std::string text;  // hexadecimal digits
  bool recording = false;
};

// How much is kept. A run that is larger than all of it is kept alone.
struct CacheRoom {
  size_t runs = 8;
  size_t run_bytes = 512 << 20;    // of all runs together
  size_t answer_bytes = 48 << 20;  // of all answers; one has at most a quarter of it
};

class RunCache {
 public:
  // `program` and `database_option`: for the commands on the pages.
  RunCache(std::string database, std::string program, std::string database_option,
           CacheRoom room = {});

  // Nothing: there is no such run.
  static std::optional<RunVersion> VersionOf(collectors::ReadStore& store, int64_t run_id);

  // The run at that version. One thread makes it, others that want the same wait. Of a run that is
  // being recorded it may be up to kReportAgeNs older. Throws as LoadForPages.
  std::shared_ptr<const LoadedRun> Load(int64_t run_id, const RunVersion& version);

  std::shared_ptr<const CachedAnswer> Find(const std::string& key);
  std::shared_ptr<const CachedAnswer> Keep(const std::string& key, std::string body);

  // About what runs and answers take now.
  size_t HeldRunBytes();
  size_t HeldAnswerBytes();

  const std::string& database() const { return database_; }
  const std::string& program() const { return program_; }
  const std::string& database_option() const { return database_option_; }

  static constexpr int64_t kReportAgeNs = 5'000'000'000;

 private:
  struct Entry {
    std::mutex making;
    RunVersion version;
    int64_t made_ns = 0;
    std::shared_ptr<const LoadedRun> loaded;
    size_t bytes = 0;  // about; of the cache's own mutex
  };
  void MakeRoom(Entry& made, size_t bytes);
  size_t RunBytes() const;
  using Order = std::list<std::pair<std::string, std::shared_ptr<const CachedAnswer>>>;

  std::string database_, program_, database_option_;
  CacheRoom room_;
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<Entry>> runs_;
  std::list<int64_t> recent_;  // runs, the one used last in front
  Order answers_;              // the one used last in front
  std::map<std::string, Order::iterator> index_;
  size_t held_bytes_ = 0;
};

}  // namespace headrace::dashboards
