// CPU stacks: at every tick of a CPU's software clock (perf_event, 99 Hz), the stack of the thread
// that runs there, if it is the target's, counted by operator and thread group.
//
// Needs perf_event programs (4.9), bpf_get_stack (4.18), bpf_task_pt_regs (5.15), ring buffers.
#include "probes/bpf/stack.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 period_ns = 10101010;  // that a sample stands for

SEC("perf_event")
int cpu_stack(void* ctx) {
  struct hr_stack_key key = {};
  struct hr_group_name name;
  key.word = hr_word_here(&key.tgid);
  if (!key.tgid) return 0;
  bpf_get_current_comm(&name, sizeof(name));
  hr_group((struct hr_group_name*)key.group, &name);
  key.stack = hr_store_stack(ctx, key.tgid, 0);
  hr_count_stack(&key, 1, period_ns);
  return 0;
}
