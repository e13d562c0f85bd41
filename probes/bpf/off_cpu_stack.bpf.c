// Off-CPU stacks: where the target's threads block. The stack, the operator word and the cause are
// taken when a thread is switched out, and credited with the blocked time when it is switched in.
// Which periods' stacks are taken: switch_note.bpf.h.
//
// Needs tp_btf sched_switch. Wake-ups, and what a long period without stack was for, are told by
// the program `offcpu`, if it is loaded: without it waiting for a CPU after the wake-up counts as
// blocked.
#include "probes/bpf/stack.bpf.h"
#include "probes/bpf/switch_note.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 loaded_ns = 0;
__u64 lost_long_periods_count = 0;  // neither a stack nor a cause is known

static __always_inline void credit(struct hr_thread_state* t, __u64 ns) {
  struct hr_stack_key key = {};
  key.tgid = t->tgid;
  hr_group((struct hr_group_name*)key.group, (const struct hr_group_name*)t->comm);
  if (t->stack_weight) {
    key.stack = t->stack;
    key.word = t->stack_word;
    key.cause = t->stack_cause;
    // Known only now: a wait with a time-out that ran out.
    if (key.cause == HR_CAUSE_LOCK && t->cause == HR_CAUSE_SLEEP) key.cause = HR_CAUSE_SLEEP;
  } else if (t->blocked_ns < loaded_ns) {
    return;  // it began before stacks were taken
  } else if (t->off_since_ns) {
    key.word = t->word;
    key.cause = t->cause;
  } else {
    __sync_fetch_and_add(&lost_long_periods_count, 1);
    return;
  }
  if (ns > HR_QUANTUM_NS) {
    hr_count_stack(&key, 1, ns);
  } else {
    const __u64 samples = (t->stack_weight + 8) / 16;
    hr_count_stack(&key, samples ? samples : 1, ns * t->stack_weight / 16);
  }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(off_cpu_stack, bool preempt, struct task_struct* prev, struct task_struct* next) {
  struct hr_switch_note* note = hr_note_here();
  if (!note) return 0;
  struct hr_thread_state* t;
  hr_note_switch(note, prev->pid, next->pid);
  if (!hr_sees_first(note) && !note->weight && !note->off_ns) return 0;
  if (hr_sees_first(note) || note->weight) {
    t = hr_target_thread(prev);
    const unsigned int state = task_state(prev);
    if (t && hr_blocks(preempt, state)) {
      if (hr_sees_first(note)) hr_note_block(note, t, bpf_ktime_get_ns());
      if (note->weight) {
        t->stack_word = hr_current_word(t);
        t->stack_cause = cause_of(prev, state);
        t->stack = hr_store_stack(ctx, t->tgid, 1);
        t->stack_weight = note->weight;
      }
    }
  }
  if (hr_sees_first(note) || note->off_ns) {
    t = hr_target_thread(next);
    if (t && hr_sees_first(note)) hr_note_resume(note, t, bpf_ktime_get_ns());
    if (t && note->off_ns) credit(t, note->off_ns);
  }
  return 0;
}
