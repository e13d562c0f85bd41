#include "probes/bpf/program.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/kernel.h"
#include "probes/bpf/limits.h"
#include "probes/bpf/map_entries.h"
#include "probes/bpf/objects.h"

namespace headrace::probes::bpf {
namespace {

constexpr double kLeastMeasuredNs = 100e6;  // shorter ones say nothing

// The hook of "tp_btf/sched_switch" is "sched_switch"; "" for other sections.
std::string_view TracepointOf(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  constexpr std::string_view kPrefix = "tp_btf/";
  return section.starts_with(kPrefix) ? section.substr(kPrefix.size()) : std::string_view();
}

}  // namespace

struct Program::Object {
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  std::map<std::string, std::pair<uint32_t, uint32_t>> types;  // of key and value, by map
  ~Object() {
    for (bpf_link* link : links) bpf_link__destroy(link);
    bpf_object__close(object);
  }
};

// An iterator's program runs while its output, which ours do not write, is read.
static void RunOnce(int link_fd) {
  const int fd = bpf_iter_create(link_fd);
  if (fd < 0) return;
  char buffer[64];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EAGAIN)) {
  }
  close(fd);
}

// Sets a constant of an object that is not loaded yet.
static void SetConstantOf(bpf_object* object, const std::string& name, uint64_t value) {
  bpf_map *map, *section = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::string_view(bpf_map__name(map)).ends_with(".rodata")) section = map;
  }
  const btf* types = bpf_object__btf(object);
  const int id = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  HR_CHECK(section != nullptr && id > 0, "the BPF object has no constants");
  const btf_type* type = btf__type_by_id(types, static_cast<uint32_t>(id));
  for (int i = 0; i < btf_vlen(type); i++) {
    const btf_var_secinfo& variable = btf_var_secinfos(type)[i];
    const btf_type* declared = btf__type_by_id(types, variable.type);
    if (name != btf__name_by_offset(types, declared->name_off)) continue;
    size_t size = 0;
    const auto* before = static_cast<const uint8_t*>(bpf_map__initial_value(section, &size));
    std::vector<uint8_t> memory(before, before + size);
    std::memcpy(memory.data() + variable.offset, &value,
                std::min<size_t>(variable.size, sizeof value));
    bpf_map__set_initial_value(section, memory.data(), size);
    return;
  }
  HR_CHECK(false, "the BPF object has no such constant");
}

struct Program::Layout {
  int fd = -1;
  uint32_t max_entries = 0;
  size_t key_size = 0, value_size = 0;
  Members key, value;
};

Program::Program(std::string object) : name_(std::move(object)) {
  HR_CHECK(Objects().count(name_) == 1, "no BPF object of that name is built in");
}

Program::~Program() { Unload(); }

void Program::Unload() {
  if (followed_) followed_->Leave(this);
  layouts_.clear();
  costs_.clear();
  object_.reset();
  followed_.reset();
}

void Program::Prefer(std::vector<std::string> functions, bool optional) {
  groups_.emplace_back(std::move(functions), optional);
}
void Program::SetConstant(const std::string& name, uint64_t value) { constants_[name] = value; }
void Program::Disable(const std::string& function) { disabled_.push_back(function); }

Availability Program::Load(const Host& host, const Target& target) {
  if (auto missing = MissingPrivilege(host)) return *missing;
  CollectLibbpfLog();
  int error;
  followed_ = Followed::Get(&error);
  if (!followed_) return LoadFailure(error, "follow");
  followed_->Follow(target, true);
  Availability loaded = LoadObject();
  if (!loaded.usable()) Unload();
  return loaded;
}

Availability Program::LoadObject() {
  const auto bytes = ObjectOf(name_);
  const std::string label = "hr_" + name_;
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = label.c_str());
  auto opened = std::make_unique<Object>();
  opened->object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!opened->object) return LoadFailure(errno, name_);
  if (auto lacking = ChooseFunctions(opened->object)) return *lacking;
  SetUpMaps(opened.get());
  for (const auto& [name, value] : constants_) SetConstantOf(opened->object, name, value);
  if (const int error = bpf_object__load(opened->object)) return LoadFailure(-error, name_);
  if (auto failure = Attach(opened.get())) return *failure;
  object_ = std::move(opened);
  loaded_ns_ = MonotonicNs();
  stats_before_ns_ = followed_->run_time().MeasuredNs(loaded_ns_);
  if (absent_.empty()) return Availability::Ok();
  return Availability::Degraded(
      fmt::format("this kernel has no tracepoint {}", fmt::join(absent_, "; ")), "a newer kernel");
}

// Leaves out the functions that are not wanted and, of each group, all but the first that this
// kernel has a hook for. Empty: the kernel has what is needed.
std::optional<Availability> Program::ChooseFunctions(bpf_object* object) {
  absent_.clear();
  std::set<std::string> off(disabled_.begin(), disabled_.end());
  std::set<std::string> grouped;
  for (const auto& [functions, optional] : groups_) {
    bool found = false;
    std::string hooks;
    for (const std::string& function : functions) {
      const bpf_program* program = bpf_object__find_program_by_name(object, function.c_str());
      HR_CHECK(program != nullptr, "no function of that name in the BPF object");
      grouped.insert(function);
      const std::string_view hook = TracepointOf(program);
      const bool use = !found && (hook.empty() || HasTracepoint(hook));
      if (!use) off.insert(function);
      found = found || use;
      hooks += (hooks.empty() ? "" : ", ") + std::string(hook);
    }
    if (found) continue;
    if (!optional) return NoTracepoint(hooks);
    absent_.push_back(hooks);
  }
  bpf_program* program;
  bpf_object__for_each_program(program, object) {
    const std::string function = bpf_program__name(program);
    const std::string_view hook = TracepointOf(program);
    if (!grouped.count(function) && !off.count(function) && !hook.empty() && !HasTracepoint(hook)) {
      return NoTracepoint(hook);
    }
    if (off.count(function)) bpf_program__set_autoload(program, false);
  }
  return std::nullopt;
}

// The shared maps, and smaller ones when a test asks for losses.
void Program::SetUpMaps(Object* opened) {
  bpf_map* map;
  bpf_object__for_each_map(map, opened->object) {
    const std::string map_name = bpf_map__name(map);
    // Once a map is another object's, its type numbers are of that object's type information.
    opened->types[map_name] = {bpf_map__btf_key_type_id(map), bpf_map__btf_value_type_id(map)};
    if (const int fd = followed_->SharedMap(map_name); fd >= 0) bpf_map__reuse_fd(map, fd);
    if (const auto it = max_entries_.find(map_name); it != max_entries_.end()) {
      bpf_map__set_max_entries(map, it->second);
    }
    const auto limit = MapEntriesLimit();
    if (limit && bpf_map__type(map) == BPF_MAP_TYPE_HASH && map_name != "targets" &&
        map_name != "threads") {
      bpf_map__set_max_entries(map, std::min(*limit, bpf_map__max_entries(map)));
    }
  }
}

// Attaches what is loaded, and runs what looks once at all there is. Empty: all are attached.
std::optional<Availability> Program::Attach(Object* opened) {
  bpf_program* program;
  bpf_object__for_each_program(program, opened->object) {
    if (!bpf_program__autoload(program) || bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT) {
      continue;
    }
    bpf_link* link = bpf_program__attach(program);
    if (!link) {
      return Availability::Unavailable(
          fmt::format("attach {} of {}: {}", bpf_program__name(program), name_,
                      std::strerror(errno)),
          "HEADRACE_BPF_VERBOSE=1 says more");
    }
    opened->links.push_back(link);
    if (bpf_program__expected_attach_type(program) == BPF_TRACE_ITER) RunOnce(bpf_link__fd(link));
  }
  return std::nullopt;
}

std::string Program::Chosen(const std::vector<std::string>& functions) const {
  if (!object_) return "";
  for (const std::string& function : functions) {
    const bpf_program* program =
        bpf_object__find_program_by_name(object_->object, function.c_str());
    if (program && bpf_program__autoload(program)) return function;
  }
  return "";
}

void Program::Follow(const Target& target) {
  if (followed_) followed_->Follow(target, false);
}

const Program::Layout& Program::LayoutOf(const std::string& name) {
  auto& layout = layouts_[name];
  if (layout) return *layout;
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  bpf_map* map = bpf_object__find_map_by_name(object_->object, name.c_str());
  HR_CHECK(map != nullptr, "the BPF object has no such map");
  layout = std::make_unique<Layout>();
  layout->fd = bpf_map__fd(map);
  layout->max_entries = bpf_map__max_entries(map);
  layout->key_size = bpf_map__key_size(map);
  layout->value_size = bpf_map__value_size(map);
  const btf* types = bpf_object__btf(object_->object);
  const auto [key_type, value_type] = object_->types.at(name);
  layout->key = MembersOf(types, key_type);
  layout->value = MembersOf(types, value_type);
  return *layout;
}

void Program::ForEach(const std::string& map,
                      const std::function<void(const Record&, const Record&)>& visit) {
  const Layout& layout = LayoutOf(map);
  ForEachEntry(layout.fd, layout.max_entries, layout.key_size, layout.value_size,
               [&](const void* key, const void* value) {
                 visit(Record(layout.key, key), Record(layout.value, value));
               });
}

void Program::RemoveIf(const std::string& map,
                       const std::function<bool(const Record&, const Record&)>& remove) {
  const Layout& layout = LayoutOf(map);
  std::vector<std::vector<uint8_t>> keys;
  ForEachEntry(layout.fd, layout.max_entries, layout.key_size, layout.value_size,
               [&](const void* key, const void* value) {
                 if (!remove(Record(layout.key, key), Record(layout.value, value))) return;
                 const auto* bytes = static_cast<const uint8_t*>(key);
                 keys.emplace_back(bytes, bytes + layout.key_size);
               });
  for (const auto& key : keys) bpf_map_delete_elem(layout.fd, key.data());
}

namespace {

// Visits the globals of an object's zero or initialised data, by name.
void ForEachGlobal(bpf_object* object,
                   const std::function<void(const char* name, uint64_t value)>& visit) {
  const btf* types = bpf_object__btf(object);
  bpf_map* map;
  bpf_object__for_each_map(map, object) {
    const std::string_view name = bpf_map__name(map);
    const char* section = name.ends_with(".bss")    ? ".bss"
                          : name.ends_with(".data") ? ".data"
                                                    : nullptr;
    if (!section) continue;
    const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
    if (id <= 0) continue;
    std::vector<uint8_t> memory(bpf_map__value_size(map));
    const uint32_t zero = 0;
    if (bpf_map_lookup_elem(bpf_map__fd(map), &zero, memory.data()) != 0) continue;
    const btf_type* type = btf__type_by_id(types, static_cast<uint32_t>(id));
    for (int i = 0; i < btf_vlen(type); i++) {
      const btf_var_secinfo& variable = btf_var_secinfos(type)[i];
      const btf_type* declared = btf__type_by_id(types, variable.type);
      if (variable.size > 8 || variable.offset + variable.size > memory.size()) continue;
      uint64_t value = 0;
      std::memcpy(&value, memory.data() + variable.offset, variable.size);
      visit(btf__name_by_offset(types, declared->name_off), value);
    }
  }
}

}  // namespace

uint64_t Program::Global(const std::string& name) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  std::optional<uint64_t> found;
  ForEachGlobal(object_->object, [&](const char* global, uint64_t value) {
    if (name == global) found = value;
  });
  HR_CHECK(found.has_value(), "the BPF object has no such global");
  return *found;
}

void Program::ReportLosses(Sink& sink) {
  if (!object_) return;
  const int64_t now = MonotonicNs();
  const auto passed = static_cast<double>(now - loaded_ns_);
  // Before it the programs had not been loaded: nothing of theirs is in the kernel's sums.
  const auto measured =
      static_cast<double>(followed_->run_time().MeasuredNs(now) - stats_before_ns_);
  const bool carried_on = measured < 0.95 * passed;
  const double scale = carried_on ? passed / measured : 1;
  const auto report = [&](const std::string& owner, bpf_object* object) {
    constexpr std::string_view kPrefix = "lost_", kSuffix = "_count";
    ForEachGlobal(object, [&](std::string_view name, uint64_t value) {
      if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return;
      std::string what(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
      std::replace(what.begin(), what.end(), '_', ' ');
      sink.Lost(owner + ": " + what, static_cast<int64_t>(value), std::nullopt);
    });
    bpf_program* program;
    bpf_object__for_each_program(program, object) {
      bpf_prog_info info = {};
      uint32_t size = sizeof info;
      const int fd = bpf_program__fd(program);
      if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
      const std::string name = bpf_program__name(program);
      // A program that would interrupt itself on the same CPU is not run.
      sink.Lost(fmt::format("{}: runs of {}", owner, name),
                static_cast<int64_t>(info.recursion_misses), std::nullopt);
      if (measured < kLeastMeasuredNs) continue;
      // The rate may fall; a sum does not.
      Cost& cost = costs_[owner + "/" + name];
      cost.run_ns = std::max(cost.run_ns, static_cast<double>(info.run_time_ns) * scale);
      cost.runs = std::max(cost.runs, static_cast<double>(info.run_cnt) * scale);
      Measurement m;
      m.labels.cause = owner + "/" + name;
      if (carried_on) m.source = Source::kEstimate;
      m.metric = "bpf_run_time_ns";
      m.value = cost.run_ns;
      sink.Add(m);
      m.metric = "bpf_runs_count";
      m.value = cost.runs;
      sink.Add(m);
    }
  };
  report(name_, object_->object);
  // What serves all of them is said by one.
  if (followed_->IsReportedBy(this)) report("follow", followed_->object());
}

int Program::map_fd(const std::string& map) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  return bpf_object__find_map_fd_by_name(object_->object, map.c_str());
}

int Program::program_fd(const std::string& function) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  const bpf_program* program = bpf_object__find_program_by_name(object_->object, function.c_str());
  return program ? bpf_program__fd(program) : -1;
}

Availability CheckBpf(const Host& host) {
  Program follow("follow");
  return follow.Load(host, Target());
}

}  // namespace headrace::probes::bpf
