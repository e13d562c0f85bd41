// Program: one of our BPF objects, loaded into the kernel. It also keeps up to date what all
// objects share: which processes are measured.
//
// Nothing is read from disk but the kernel's own type information; nothing is pinned, so whatever
// happens to this process, the kernel frees all of it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probes/bpf/record.h"
#include "probes/probe.h"

struct bpf_object;  // libbpf's

namespace headrace::probes::bpf {

class Followed;

class Program {
 public:
  // `object`: name of a .bpf.c file of this folder, without endings.
  explicit Program(std::string object);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Call before Load. The first of these functions whose kernel hook exists is used, the others are
  // not; if none exists, Load fails unless `optional`.
  void Prefer(std::vector<std::string> functions, bool optional = false);
  // A function whose hook may be absent; then it is left out and named by absent().
  void Optional(const std::string& function) { Prefer({function}, true); }
  // A `const volatile` global of the object.
  void SetConstant(const std::string& name, uint64_t value);
  // The size of a map: entries, or bytes of a ring buffer (a power of two).
  void SetMaxEntries(const std::string& map, uint32_t entries) { max_entries_[map] = entries; }
  // Leaves a function out altogether.
  void Disable(const std::string& function);

  // Loads and attaches, and begins to follow the target. Ok, Degraded when optional hooks are
  // absent, or Unavailable with the failing call, errno in words, and what would change it.
  // Functions of type perf_event are loaded, not attached: the caller opens the events. Iterators
  // are run once.
  Availability Load(const Host& host, const Target& target);
  bool loaded() const { return object_ != nullptr; }
  void Unload();

  // The requested hooks that this kernel does not have.
  const std::vector<std::string>& absent() const { return absent_; }
  // Which function of a Prefer group is in use; "" if none.
  std::string Chosen(const std::vector<std::string>& functions) const;

  // Updates the processes that came or went. Call at the beginning of every Read.
  void Follow(const Target& target);
  // Visits every entry of an output map. Entries that appear meanwhile may be missed until the next
  // time; entries are seen at most once, unless the map changes under a kernel without batch reads.
  void ForEach(const std::string& map,
               const std::function<void(const Record& key, const Record& value)>& visit);
  // Removes entries for which `remove` is true.
  void RemoveIf(const std::string& map,
                const std::function<bool(const Record& key, const Record& value)>& remove);
  // A global variable.
  uint64_t Global(const std::string& name) const;
  // Reports every global named lost_<what>_count ("threads" for lost_threads_count), as what this
  // object lost: "<object>: threads". And what its programs cost: bpf_run_time_ns and
  // bpf_runs_count by program, as the kernel measures them; between its measurements
  // (RunTimeWindows) their rate is carried on. Nothing where the kernel refuses to measure: it
  // takes CAP_SYS_ADMIN. Call at the end of every Read.
  void ReportLosses(Sink& sink);

  int map_fd(const std::string& map) const;
  int program_fd(const std::string& function) const;

 private:
  struct Object;
  struct Layout;
  struct Cost {
    double run_ns = 0, runs = 0;  // measured, and extrapolated between measurements
  };
  const Layout& LayoutOf(const std::string& map);
  Availability LoadObject();
  std::optional<Availability> ChooseFunctions(bpf_object* object);
  void SetUpMaps(Object* opened);
  std::optional<Availability> Attach(Object* opened);

  std::string name_;
  std::vector<std::pair<std::vector<std::string>, bool>> groups_;
  std::map<std::string, uint64_t> constants_;
  std::map<std::string, uint32_t> max_entries_;
  std::vector<std::string> disabled_, absent_;
  std::unique_ptr<Object> object_;
  std::shared_ptr<Followed> followed_;
  std::map<std::string, std::unique_ptr<Layout>> layouts_;
  std::map<std::string, Cost> costs_;
  int64_t loaded_ns_ = 0;
  int64_t stats_before_ns_ = 0;  // how long the kernel had measured before the object was loaded
};

// Whether our BPF programs can be loaded here at all, and if not, why: tries to load the smallest
// one.
Availability CheckBpf(const Host& host);

}  // namespace headrace::probes::bpf
