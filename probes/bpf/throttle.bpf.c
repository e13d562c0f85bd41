/* Time operators lose to memory being short: reclaim they have to do themselves, for the machine or
 * for the limit of their memory control group, and sleeps the kernel makes them take meanwhile. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

enum hr_reclaim {
  HR_RECLAIM_DIRECT = 0,   /* the machine is out of free memory */
  HR_RECLAIM_MEMORY_LIMIT, /* of the memory control group */
  HR_RECLAIM_SLEEP,        /* made to sleep so that reclaim can catch up */
};

struct stop_key {
  __u32 tgid, word;
  enum hr_reclaim cause;
};
struct stop_value {
  __u64 stops_count, stop_ns;
};
HR_OUTPUT(stops, stop_key, stop_value, 2048);
__u64 lost_stops_count = 0;

struct begun {
  __u64 start_ns;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32); /* tid */
  __type(value, struct begun);
} begun SEC(".maps");

static __always_inline void count(enum hr_reclaim cause, __u64 ns) {
  struct stop_key key = {};
  key.word = hr_word_here(&key.tgid) & 0xffff;
  if (!key.tgid) return;
  key.cause = cause;
  struct stop_value zero = {};
  struct stop_value* value = HR_VALUE(&stops, &key, &zero, &lost_stops_count);
  if (!value) return;
  __sync_fetch_and_add(&value->stops_count, 1);
  __sync_fetch_and_add(&value->stop_ns, ns);
}

static __always_inline int begin(void) {
  if (!hr_current_target()) return 0;
  __u32 tid = bpf_get_current_pid_tgid();
  struct begun value = {.start_ns = bpf_ktime_get_ns()};
  bpf_map_update_elem(&begun, &tid, &value, BPF_ANY);
  return 0;
}

static __always_inline int end(enum hr_reclaim cause) {
  if (!hr_current_target()) return 0;
  __u32 tid = bpf_get_current_pid_tgid();
  struct begun* value = bpf_map_lookup_elem(&begun, &tid);
  if (!value || !value->start_ns) return 0;
  __u64 ns = bpf_ktime_get_ns() - value->start_ns;
  value->start_ns = 0;
  count(cause, ns);
  return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_direct_begin) { return begin(); }

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_direct_end) { return end(HR_RECLAIM_DIRECT); }

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_limit_begin) { return begin(); }

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_limit_end) { return end(HR_RECLAIM_MEMORY_LIMIT); }

SEC("tp_btf/mm_vmscan_throttled")
int BPF_PROG(on_throttled, int node, int timeout_us, int delayed_us) {
  if (delayed_us > 0) count(HR_RECLAIM_SLEEP, (__u64)delayed_us * 1000);
  return 0;
}
