/* Keeps `targets` and `threads` right as the measured processes fork and exec: a child is measured
 * from its first instruction on. Ended ones are removed by user space (program.cc). */
#include "probes/bpf/operator.bpf.h"

char LICENSE[] SEC("license") = "GPL";

__u64 lost_processes_count = 0;

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  __u32 parent_tgid = BPF_CORE_READ(parent, tgid);
  if (!hr_target_of(parent_tgid)) return 0;
  __u32 tgid = BPF_CORE_READ(child, tgid);
  if (tgid != parent_tgid) {
    struct hr_target fresh = {};
    if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY))
      __sync_fetch_and_add(&lost_processes_count, 1);
  }
  /* A number that was another thread's before starts afresh, waiting for its first CPU. */
  __u32 tid = BPF_CORE_READ(child, pid);
  bpf_map_delete_elem(&threads, &tid);
  struct hr_thread_state* t = hr_thread(child);
  if (t) t->off_since_ns = t->woken_ns = bpf_ktime_get_ns();
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  __u32 tgid = BPF_CORE_READ(task, tgid);
  struct hr_target* target = hr_target_of(tgid);
  if (!target) return 0;
  target->segment_address = 0;
  __u32 tid = BPF_CORE_READ(task, pid);
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (t) {
    t->slot_address = 0;
    bpf_core_read(&t->comm, sizeof t->comm, &task->comm);
  }
  return 0;
}
