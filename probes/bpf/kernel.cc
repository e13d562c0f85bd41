#include "probes/bpf/kernel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/gzip.h"
#include "probes/bpf/limits.h"
#include "probes/bpf/objects.h"

namespace headrace::probes::bpf {

namespace {

constexpr uint64_t kInitialPidNamespace = 4026531836;

// The last complaints of libbpf, for the one line an error gets.
thread_local std::string libbpf_log;

int Log(enum libbpf_print_level level, const char* format, va_list arguments) {
  static const bool verbose = std::getenv("HEADRACE_BPF_VERBOSE") != nullptr;
  if (verbose) {  // the verifier's reasons are one message of many lines
    va_list copy;
    va_copy(copy, arguments);
    std::vfprintf(stderr, format, copy);
    va_end(copy);
  }
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (level == LIBBPF_WARN && libbpf_log.size() < 16384) libbpf_log += line;
  return 0;
}

// "prog 'x': ..." of the log says which program failed.
std::string FailedProgram() {
  const size_t at = libbpf_log.find("prog '");
  if (at == std::string::npos) return "";
  const size_t end = libbpf_log.find('\'', at + 6);
  return end == std::string::npos ? "" : libbpf_log.substr(at + 6, end - at - 6);
}

// The kernel's types; null where the kernel has none. Read once: it takes some 20 ms.
const btf* KernelTypes() {
  static const btf* types = [] {
    btf* loaded = btf__load_vmlinux_btf();
    return libbpf_get_error(loaded) ? nullptr : loaded;
  }();
  return types;
}

bool HasLoopHelper() {
  static const bool has = [] {
    const btf* types = KernelTypes();
    const int id = types ? btf__find_by_name_kind(types, "bpf_func_id", BTF_KIND_ENUM) : 0;
    if (id <= 0) return false;
    const btf_type* helpers = btf__type_by_id(types, static_cast<uint32_t>(id));
    const struct btf_enum* entries = ::btf_enum(helpers);
    return std::any_of(entries, entries + btf_vlen(helpers), [&](const struct btf_enum& entry) {
      return std::string_view(btf__name_by_offset(types, entry.name_off)) == "BPF_FUNC_loop";
    });
  }();
  return has && !PlainPrograms();
}

}  // namespace

void CollectLibbpfLog() {
  libbpf_set_print(Log);
  libbpf_log.clear();
}

bool HasTracepoint(std::string_view name) {
  const std::string type = "btf_trace_" + std::string(name);
  return KernelTypes() && btf__find_by_name_kind(KernelTypes(), type.c_str(), BTF_KIND_TYPEDEF) > 0;
}

std::span<const unsigned char> ObjectOf(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::string> objects;
  const std::string chosen = HasLoopHelper() ? name + "_loop" : name;
  const std::lock_guard lock(mutex);
  std::string& object = objects[chosen];
  if (object.empty()) {
    const std::span<const unsigned char> member = Objects().find(chosen)->second;
    object = Gunzipped({reinterpret_cast<const char*>(member.data()), member.size()});
  }
  return {reinterpret_cast<const unsigned char*>(object.data()), object.size()};
}

std::optional<Availability> MissingPrivilege(const Host& host) {
  if (!KernelTypes()) {
    return Availability::Unavailable(
        fmt::format("/sys/kernel/btf/vmlinux: {}", std::strerror(errno ? errno : ENOENT)),
        "a kernel built with CONFIG_DEBUG_INFO_BTF");
  }
  for (const auto& [capability, name] :
       {std::pair{CAP_BPF, "CAP_BPF"}, std::pair{CAP_PERFMON, "CAP_PERFMON"}}) {
    const std::optional<bool> has = host.HasCapability(capability);
    if (!has) {
      return Availability::Unavailable(
          fmt::format("/proc/self/status: {}", std::strerror(errno ? errno : ENOENT)),
          "whatever keeps /proc from being read: a mount, or the limit of open files (ulimit -n)");
    }
    if (*has) continue;
    return Availability::Unavailable(
        fmt::format("this process lacks {}", name),
        "run as root, or give CAP_BPF and CAP_PERFMON; in a container: --cap-add BPF --cap-add "
        "PERFMON");
  }
  struct stat info;
  if (stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != kInitialPidNamespace) {
    return Availability::Unavailable(
        "the collector runs in a pid namespace of its own, where it cannot name the kernel's tasks",
        "run it with the host's pid namespace; for a container: --pid=host");
  }
  return std::nullopt;
}

Availability LoadFailure(int error, const std::string& object) {
  const std::string program = FailedProgram();
  const std::string what =
      fmt::format("bpf(BPF_PROG_LOAD) of {}{}: {}", object,
                  program.empty() ? "" : fmt::format(" ({})", program), std::strerror(error));
  if (error == EPERM || error == EACCES) {
    return Availability::Unavailable(what,
                                     "CAP_BPF and CAP_PERFMON; a kernel policy may refuse it too "
                                     "(lockdown=confidentiality, a seccomp filter)");
  }
  if (error == ENOMEM) return Availability::Unavailable(what, "a larger memory limit (memcg)");
  return Availability::Unavailable(what,
                                   "a kernel of 5.8 or later; HEADRACE_BPF_VERBOSE=1 says more");
}

Availability NoTracepoint(std::string_view hooks) {
  return Availability::Unavailable(fmt::format("this kernel has no tracepoint {}", hooks),
                                   "a newer kernel");
}

}  // namespace headrace::probes::bpf
