/* Calls of the read and write families, by operator: bytes, count, time, and whether the call had
 * to wait for a device. For --deep: the hooks make every system call of the machine slower. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

enum hr_call {
  HR_CALL_READ = 0,
  HR_CALL_PREAD64,
  HR_CALL_READV,
  HR_CALL_PREADV,
  HR_CALL_PREADV2,
  HR_CALL_WRITE,
  HR_CALL_PWRITE64,
  HR_CALL_WRITEV,
  HR_CALL_PWRITEV,
  HR_CALL_PWRITEV2,
};
enum hr_kind {
  HR_KIND_FILE = 0,
  HR_KIND_PIPE,
  HR_KIND_SOCKET,
  HR_KIND_OTHER,
};
enum {
  kSocket = 0140000,
  kPipe = 0010000,
  kRegular = 0100000,
  kBlock = 0060000,
  kFormat = 0170000
};

/* Calls in progress, by thread; entries of ended threads give way by themselves. */
struct call {
  __u64 start_ns;
  __u32 number; /* enum hr_call */
  __u32 kind;   /* enum hr_kind */
  __u32 waited; /* 1: it slept for a device, or sent it a request itself */
  __u32 added;  /* 1: it added to the page cache */
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct call);
} calls SEC(".maps");
__u64 lost_calls_count = 0;

struct total_key {
  __u32 tgid, word;
  enum hr_call call;
  enum hr_kind kind;
  __u32 device; /* 1: the call waited for a device */
};
struct total_value {
  __u64 calls_count, failed_count, bytes, call_ns;
};
HR_OUTPUT(totals, total_key, total_value, 8192);

struct latency_key {
  __u32 tgid, word;
  __u32 writes; /* 1: write family */
  __u32 device;
  __u32 bucket; /* floor(log2(ns)) */
};
struct latency_value {
  __u64 calls_count;
};
HR_OUTPUT(latencies, latency_key, latency_value, 8192);
__u64 lost_histogram_entries_count = 0;

/* Bytes and duration of one read call together; a call that returned none has no size. */
struct pair_key {
  __u32 tgid, word;
  __u32 device;
  __u32 size_bucket, latency_bucket; /* floor(log2) of bytes and of ns */
};
struct pair_value {
  __u64 calls_count;
};
HR_OUTPUT(pairs, pair_key, pair_value, 8192);

static __always_inline int call_of(long number) {
#if defined(__TARGET_ARCH_x86)
  switch (number) {
    case 0:
      return HR_CALL_READ;
    case 1:
      return HR_CALL_WRITE;
    case 17:
      return HR_CALL_PREAD64;
    case 18:
      return HR_CALL_PWRITE64;
    case 19:
      return HR_CALL_READV;
    case 20:
      return HR_CALL_WRITEV;
    case 295:
      return HR_CALL_PREADV;
    case 296:
      return HR_CALL_PWRITEV;
    case 327:
      return HR_CALL_PREADV2;
    case 328:
      return HR_CALL_PWRITEV2;
  }
#else
  switch (number) {
    case 63:
      return HR_CALL_READ;
    case 64:
      return HR_CALL_WRITE;
    case 65:
      return HR_CALL_READV;
    case 66:
      return HR_CALL_WRITEV;
    case 67:
      return HR_CALL_PREAD64;
    case 68:
      return HR_CALL_PWRITE64;
    case 69:
      return HR_CALL_PREADV;
    case 70:
      return HR_CALL_PWRITEV;
    case 286:
      return HR_CALL_PREADV2;
    case 287:
      return HR_CALL_PWRITEV2;
  }
#endif
  return -1;
}

static __always_inline enum hr_kind kind_of(struct task_struct* task, unsigned int fd) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (!table || fd >= BPF_CORE_READ(table, max_fds)) return HR_KIND_OTHER;
  struct file** list = BPF_CORE_READ(table, fd);
  struct file* file = 0;
  bpf_core_read(&file, sizeof file, list + fd);
  if (!file) return HR_KIND_OTHER;
  unsigned short mode = BPF_CORE_READ(file, f_inode, i_mode) & kFormat;
  if (mode == kRegular || mode == kBlock) return HR_KIND_FILE;
  if (mode == kPipe) return HR_KIND_PIPE;
  if (mode == kSocket) return HR_KIND_SOCKET;
  return HR_KIND_OTHER;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs* registers, long number) {
  int call = call_of(number);
  if (call < 0) return 0;
  __u64 id = bpf_get_current_pid_tgid();
  if (!hr_target_of(id >> 32)) return 0;
#if defined(__TARGET_ARCH_x86)
  unsigned int fd = BPF_CORE_READ(registers, di);
#else
  unsigned int fd = BPF_CORE_READ((struct pt_regs___hr_arm64*)registers, orig_x0);
#endif
  struct call begun = {};
  begun.number = call;
  begun.kind = kind_of((struct task_struct*)bpf_get_current_task(), fd);
  begun.start_ns = bpf_ktime_get_ns();
  __u32 tid = id;
  struct call* found = bpf_map_lookup_elem(&calls, &tid);
  if (found)
    *found = begun;
  else if (bpf_map_update_elem(&calls, &tid, &begun, BPF_ANY))
    __sync_fetch_and_add(&lost_calls_count, 1);
  return 0;
}

static __noinline int count_pair(struct latency_key* call, __u64 bytes) {
  struct pair_key key = {};
  key.tgid = call->tgid;
  key.word = call->word;
  key.device = call->device;
  key.size_bucket = hr_log2(bytes);
  key.latency_bucket = call->bucket;
  struct pair_value zero = {};
  struct pair_value* value = HR_VALUE(&pairs, &key, &zero, &lost_histogram_entries_count);
  if (value) __sync_fetch_and_add(&value->calls_count, 1);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs* registers, long result) {
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tid = id;
  if (!hr_target_of(id >> 32)) return 0;
  struct call* found = bpf_map_lookup_elem(&calls, &tid);
  if (!found || !found->start_ns) return 0;
  struct call call = *found;
  found->start_ns = 0;
  __u64 call_ns = bpf_ktime_get_ns() - call.start_ns;
  struct total_key key = {};
  key.word = hr_word_here(&key.tgid) & 0xffff;
  if (!key.tgid) return 0; /* no room for the thread: counted there */
  key.call = call.number;
  key.kind = call.kind;
  key.device = call.waited;
  struct total_value zero = {};
  struct total_value* value = HR_VALUE(&totals, &key, &zero, &lost_calls_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->calls_count, 1);
  __sync_fetch_and_add(&value->call_ns, call_ns);
  if (result < 0)
    __sync_fetch_and_add(&value->failed_count, 1);
  else
    __sync_fetch_and_add(&value->bytes, result);
  if (call.kind != HR_KIND_FILE) return 0;
  struct latency_key latency = {};
  latency.tgid = key.tgid;
  latency.word = key.word;
  latency.writes = call.number >= HR_CALL_WRITE;
  latency.device = call.waited;
  latency.bucket = hr_log2(call_ns);
  struct latency_value none = {};
  struct latency_value* count =
      HR_VALUE(&latencies, &latency, &none, &lost_histogram_entries_count);
  if (count) __sync_fetch_and_add(&count->calls_count, 1);
  if (result > 0 && !latency.writes) count_pair(&latency, result);
  return 0;
}

static __always_inline struct call* call_of_current(void) {
  __u64 id = bpf_get_current_pid_tgid();
  if (!hr_target_of(id >> 32)) return 0;
  __u32 tid = id;
  struct call* call = bpf_map_lookup_elem(&calls, &tid);
  return call && call->start_ns ? call : 0;
}

/* A call that sleeps for a device did not find its bytes in memory. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  if (!hr_target_of(prev->tgid)) return 0;
  if (!BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait)) return 0;
  struct call* call = call_of_current();
  if (call) call->waited = 1;
  return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, void* folio) {
  struct call* call = call_of_current();
  if (call) call->added = 1;
  return 0;
}

/* A request without pages for the cache is direct: the device serves it even if it is so fast that
 * nobody sleeps. With them it may be read-ahead for later calls. */
static __always_inline int sent(void) {
  struct call* call = call_of_current();
  if (call && !call->added) call->waited = 1;
  return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(on_io_start, void* request) { return sent(); }

/* Before Linux 6.5. */
SEC("tp_btf/block_getrq")
int BPF_PROG(on_getrq, void* bio) { return sent(); }
