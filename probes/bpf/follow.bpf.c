/* Keeps `targets` and `threads` right as the measured processes fork and exec: a child is measured
 * from its first instruction on, and forgotten when the kernel forgets it. */
#include "probes/bpf/switch_note.bpf.h"

char LICENSE[] SEC("license") = "GPL";

__u64 lost_processes_count = 0;
/* A process that is to become a target at its exec; 0: none. Told by user space. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} held_process SEC(".maps");

static __always_inline void add_target(__u32 tgid) {
  struct hr_target fresh = {};
  __u32 index = tgid % HR_TARGET_MARKS;
  __u8* mark = bpf_map_lookup_elem(&target_marks, &index);
  if (mark && !*mark) *mark = HR_TARGET_HERE;
  if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY))
    __sync_fetch_and_add(&lost_processes_count, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  __u32 parent_tgid = parent->tgid;
  if (!hr_target_of(parent_tgid)) return 0;
  __u32 tgid = child->tgid;
  if (tgid != parent_tgid) add_target(tgid);
  /* A number that was another thread's before starts afresh, waiting for its first CPU. */
  __u32 tid = child->pid;
  bpf_map_delete_elem(&threads, &tid);
  struct hr_thread_state* t = hr_thread(child);
  if (!t) return 0;
  t->woken_ns = bpf_ktime_get_ns();
  hr_goes_off(t, t->woken_ns);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task, int old_tid) {
  __u32 tgid = task->tgid;
  const __u32 zero = 0;
  __u32* held = bpf_map_lookup_elem(&held_process, &zero);
  if (held && *held == tgid) {
    *held = 0;
    add_target(tgid);
    struct hr_thread_state* first = hr_thread(task);
    if (first) first->on_since_ns = bpf_ktime_get_ns();
    return 0;
  }
  struct hr_target* target = hr_target_of(tgid);
  if (!target) return 0;
  target->segment_address = 0;
  /* A thread that is not the first takes the first one's number: its state goes with it. */
  __u32 tid = task->pid, before = old_tid;
  if (before != tid) {
    struct hr_thread_state* was = bpf_map_lookup_elem(&threads, &before);
    if (was) {
      bpf_map_update_elem(&threads, &tid, was, BPF_ANY);
      bpf_map_delete_elem(&threads, &before);
      struct hr_thread_state* moved = bpf_map_lookup_elem(&threads, &tid);
      if (moved) {
        moved->first = 1;
        moved->tid = tid;
      }
    }
  }
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (!t) return 0;
  t->slot_address = 0;
  t->own_tid = hr_own_number(task);
  hr_take_name(t, task);
  return 0;
}

/* Comes for every thread some time after its last switch. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  __u32 tgid = task->tgid, tid = task->pid;
  if (!hr_target_of(tgid)) return 0;
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && t->tgid == tgid && !t->off_since_ns && !t->on_since_ns)
    bpf_map_delete_elem(&threads, &tid);
  if (tid == tgid) bpf_map_delete_elem(&targets, &tgid);
  return 0;
}
