/* Page faults by operator. All of them by the processor's fault hook, where there is one; those
 * that read a device (major) by the kernel's software event, which runs in the faulting thread.
 *
 * A program that takes memory and gives it back faults some hundred thousand times a second, and
 * asking each time what the thread was doing would take percents of it. So while faults come close
 * together on a CPU only some are asked, at random distances; each stands for those since the one
 * before it. The sum over all targets is exact but for the last few of each CPU; the share of a
 * process or an operator is an estimate. */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct fault_key {
  __u32 tgid, word;
};
struct fault_value {
  __u64 all_count, minor_count, major_count;
};
HR_OUTPUT(faults, fault_key, fault_value, 4096);
__u64 lost_faults_count = 0;

/* Where `count` faults are added that the current thread's present one stands for. Of those that
 * there is no room for, the present one is counted as lost where that is found. */
static __always_inline struct fault_value* here(__u64 count) {
  struct fault_key key = {};
  key.word = hr_word_here(&key.tgid) & 0xffff;
  struct fault_value zero = {};
  struct fault_value* value = 0;
  if (key.tgid)
    value = HR_VALUE(&faults, &key, &zero, &lost_faults_count);
  else if (!hr_current_target())
    return 0;
  if (!value) __sync_fetch_and_add(&lost_faults_count, count - 1);
  return value;
}

/* Of one CPU. */
struct fault_sample {
  __u64 asked_ns; /* when the last fault was asked */
  __u32 skipped;  /* since then */
  __u32 skip;     /* so many before the next is asked */
  __u32 distance; /* of those that are asked, about; 0: not begun */
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct fault_sample);
} fault_samples SEC(".maps");

/* Asking takes a quarter of a microsecond: a thousandth of the shorter time. */
enum { kMostDistance = 32, kCloseNs = 250000, kFarNs = 2000000 };

/* How many faults the present one stands for; 0: it is not asked. */
static __always_inline __u64 faults_here(void) {
  if (!hr_may_be_target(bpf_get_current_pid_tgid() >> 32)) return 0;
  __u32 zero = 0;
  struct fault_sample* sample = bpf_map_lookup_elem(&fault_samples, &zero);
  if (!sample) return 1;
  if (sample->skipped < sample->skip) {
    sample->skipped++;
    return 0;
  }
  if (!hr_current_target()) return 0; /* it stands for nobody's */
  __u64 now = bpf_ktime_get_ns(), since = now - sample->asked_ns;
  __u64 count = sample->skipped + 1;
  __u32 distance = sample->distance ? sample->distance : 1;
  if (since > count * kFarNs)
    distance = 1;
  else if (since < kCloseNs && distance < kMostDistance)
    distance *= 2;
  else if (since > kFarNs && distance > 1)
    distance /= 2;
  sample->asked_ns = now;
  sample->distance = distance;
  sample->skipped = 0;
  sample->skip = (distance - 1) / 2 + bpf_get_prandom_u32() % distance;
  return count;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address) {
  __u64 count = faults_here();
  if (!count) return 0;
  struct fault_value* value = here(count);
  if (value) __sync_fetch_and_add(&value->all_count, count);
  return 0;
}

SEC("perf_event")
int on_major(void* event) {
  struct fault_value* value = here(1);
  if (value) __sync_fetch_and_add(&value->major_count, 1);
  return 0;
}

/* Only where the fault hook is absent. */
SEC("perf_event")
int on_minor(void* event) {
  __u64 count = faults_here();
  if (!count) return 0;
  struct fault_value* value = here(count);
  if (value) __sync_fetch_and_add(&value->minor_count, count);
  return 0;
}
