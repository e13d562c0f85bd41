/* Page faults by operator. All of them by the processor's fault hook, where there is one; those
 * that read a device (major) by the kernel's software event, which runs in the faulting thread. */
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

static __always_inline struct fault_value* here(void) {
  struct fault_key key = {};
  key.word = hr_word_here(&key.tgid) & 0xffff;
  if (!key.tgid) return 0;
  struct fault_value zero = {};
  return HR_VALUE(&faults, &key, &zero, &lost_faults_count);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address) {
  struct fault_value* value = here();
  if (value) __sync_fetch_and_add(&value->all_count, 1);
  return 0;
}

SEC("perf_event")
int on_major(void* event) {
  struct fault_value* value = here();
  if (value) __sync_fetch_and_add(&value->major_count, 1);
  return 0;
}

/* Only where the fault hook is absent. */
SEC("perf_event")
int on_minor(void* event) {
  struct fault_value* value = here();
  if (value) __sync_fetch_and_add(&value->minor_count, 1);
  return 0;
}
