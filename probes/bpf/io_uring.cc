// io_uring requests by operator.
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

struct Operation {
  uint64_t opcode;
  const char* name;
  bool moves_bytes;  // its result is a number of bytes
};
// Operations from linux/io_uring.h; the numbers are ABI.
constexpr std::array<Operation, 26> kOperations = {
    {{0, "nop", false},         {1, "readv", true},        {2, "writev", true},
     {3, "fsync", false},       {4, "read_fixed", true},   {5, "write_fixed", true},
     {6, "poll_add", false},    {9, "sendmsg", true},      {10, "recvmsg", true},
     {11, "timeout", false},    {13, "accept", false},     {16, "connect", false},
     {18, "openat", false},     {19, "close", false},      {21, "statx", false},
     {22, "read", true},        {23, "write", true},       {26, "send", true},
     {27, "recv", true},        {28, "openat2", false},    {30, "splice", true},
     {47, "send_zc", true},     {48, "sendmsg_zc", true},  {49, "read_multishot", true},
     {58, "readv_fixed", true}, {59, "writev_fixed", true}}};

// Whether the hook io_uring_complete gives the completion entry, not its values. Nothing: the
// kernel has no io_uring, or no type information.
std::optional<bool> CompletionGivesEntry() {
  btf* types = btf__load_vmlinux_btf();
  if (libbpf_get_error(types)) return std::nullopt;
  std::optional<bool> result;
  const int hook = btf__find_by_name_kind(types, "btf_trace_io_uring_complete", BTF_KIND_TYPEDEF);
  if (hook > 0) {
    const btf_type* pointer =
        btf__type_by_id(types, btf__type_by_id(types, static_cast<uint32_t>(hook))->type);
    const btf_type* prototype =
        pointer && btf_is_ptr(pointer) ? btf__type_by_id(types, pointer->type) : nullptr;
    // The first argument of the prototype is not an argument of the hook.
    if (prototype && btf_is_func_proto(prototype)) result = btf_vlen(prototype) == 4;
  }
  btf__free(types);
  return result;
}

class IoUringProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    const Availability bpf = CheckBpf(host);
    if (!bpf.usable()) return bpf;
    const auto entry = CompletionGivesEntry();
    if (!entry) {
      return Availability::Unavailable("this kernel has no tracepoint io_uring_complete",
                                       "a kernel built with CONFIG_IO_URING");
    }
    program_.Disable(*entry ? "on_complete_values" : "on_complete_cqe");
    program_.Prefer({"on_submit_req", "on_submit_sqe"});
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    ended_.ForEach(program_, "requests", sink,
                   [&](const Record& key, const Record& value, Sink& out) {
                     Measurement m = About(key);
                     const auto add = [&](std::string_view metric, const char* member) {
                       m.metric = metric;
                       m.value = static_cast<double>(value.Number(member));
                       out.Add(m);
                     };
                     add("io_uring_submitted_count", "submitted_count");
                     add("io_uring_completed_count", "completed_count");
                     add("io_uring_latency_ns", "latency_ns");
                     if (MovesBytes(key.Number("opcode"))) add("io_uring_bytes", "bytes");
                     if (value.Number("failed_count") > 0)
                       add("io_uring_failed_count", "failed_count");
                   });
    ended_.ForEach(program_, "buckets", sink,
                   [&](const Record& key, const Record& value, Sink& out) {
                     Measurement m = About(key);
                     m.course = false;
                     m.metric = "io_uring_latency_count";
                     m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.Number("bucket"), 62);
                     m.value = static_cast<double>(value.Number("latency_count"));
                     out.Add(m);
                   });
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  static const Operation* Find(uint64_t opcode) {
    const auto it = std::find_if(kOperations.begin(), kOperations.end(),
                                 [&](const Operation& o) { return o.opcode == opcode; });
    return it == kOperations.end() ? nullptr : &*it;
  }
  static bool MovesBytes(uint64_t opcode) {
    const Operation* operation = Find(opcode);
    return operation && operation->moves_bytes;
  }
  static Measurement About(const Record& key) {
    Measurement m = OfOperator(key);
    const Operation* operation = Find(key.Number("opcode"));
    m.labels.cause =
        operation ? operation->name : fmt::format("operation {}", key.Number("opcode"));
    return m;
  }

  Program program_{"io_uring"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
};

HR_PROBE("io_uring",
         {.summary = "io_uring requests, bytes and latency by the operator that submitted "
                     "(io_uring_submit_req or io_uring_submit_sqe, io_uring_complete); with a "
                     "kernel thread that submits (SQPOLL) by process",
          .affects = "asynchronous reads and sends by operator",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check =
              [](const Host& host) {
                const Availability bpf = CheckBpf(host);
                if (!bpf.usable() || CompletionGivesEntry()) return bpf;
                return Availability::Unavailable("this kernel has no tracepoint io_uring_complete",
                                                 "a kernel built with CONFIG_IO_URING");
              },
          .make = [] { return std::make_unique<IoUringProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
