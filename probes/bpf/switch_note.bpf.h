/* What offcpu.bpf.c and off_cpu_stack.bpf.c both need of a switch of threads: found by the one that
 * comes first, in whichever order they were attached, and left for the other in a note of the CPU.
 * For most switches the note says that there is nothing more to do.
 *
 * Which periods off the CPU get a stack is a matter of time, not of the number of switches: of each
 * thread's off-CPU time a stack is taken about every HR_QUANTUM_NS, however often it blocks. How
 * long a period will be is not known when its stack could be taken; the usual length of the
 * thread's periods stands for it. So a period's chance is usual / quantum, whatever its own length
 * turns out to be, and a short one counts for quantum / usual: sums stay right. A long one, of more
 * than a quantum, counts once, with its stack if it was taken and else without, so that no single
 * period is multiplied to more time than there was. */
#ifndef HEADRACE_PROBES_BPF_SWITCH_NOTE_BPF_H_
#define HEADRACE_PROBES_BPF_SWITCH_NOTE_BPF_H_

#include "probes/bpf/cause.bpf.h"

enum {
  HR_QUANTUM_NS = 40000000,
  HR_MOST_WEIGHT = 64,    /* that a short period may count for */
  HR_PACE_NS = 100000000, /* in which a CPU's stacks are counted */
  HR_STACKS_IN_PACE = 10, /* that it may take meanwhile */
};

struct hr_switch_note {
  __u32 prev, next; /* threads that it is of */
  __u32 open;       /* 1: the other program has not seen it */
  __u32 weight;     /* of the stack of `prev` that is to be taken, in 16ths; 0: none is */
  __u64 off_ns;     /* of the period of `next` that ends here and is to be counted; 0: none */
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_switch_note);
} switch_notes SEC(".maps");

struct hr_pace {
  __u64 began_ns;
  __u32 chosen, one_in;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_pace);
} paces SEC(".maps");

/* One in how many of the chosen ones is taken by this CPU, from what its last window saw: 1 but
 * with hundreds of threads. */
static __always_inline __u32 hr_stacks_one_in(__u64 now) {
  __u32 zero = 0;
  struct hr_pace* pace = bpf_map_lookup_elem(&paces, &zero);
  if (!pace) return 1;
  if (now - pace->began_ns > HR_PACE_NS) {
    /* Two windows later the last one says nothing any more. */
    const __u32 chosen = now - pace->began_ns < 2 * HR_PACE_NS ? pace->chosen : 0;
    pace->one_in = chosen / HR_STACKS_IN_PACE + 1;
    if (pace->one_in > HR_MOST_WEIGHT) pace->one_in = HR_MOST_WEIGHT;
    pace->began_ns = now;
    pace->chosen = 0;
  }
  pace->chosen++;
  return pace->one_in ? pace->one_in : 1;
}

/* How much the stack of this period is to count; 0: it is not taken. Every period passes by with
 * its usual length, and marks at distances of a quantum, a quarter more or less so that no rhythm
 * of the thread's keeps step, say which are taken. */
static __always_inline __u32 hr_weight_of_stack(struct hr_thread_state* t, __u64 now) {
  const __u32 never_more = HR_QUANTUM_NS / 4 * 3;
  __u32 step = t->usual_off_ns > HR_QUANTUM_NS / HR_MOST_WEIGHT ? t->usual_off_ns
                                                                : HR_QUANTUM_NS / HR_MOST_WEIGHT;
  /* One that has not blocked for a quantum, or never, is always taken. */
  if (!t->blocked_ns || now - t->blocked_ns >= HR_QUANTUM_NS || step > never_more) {
    step = HR_QUANTUM_NS;
  } else {
    if (t->stack_due_ns > step) {
      t->stack_due_ns -= step;
      return 0;
    }
    t->stack_due_ns += never_more + bpf_get_prandom_u32() % (HR_QUANTUM_NS / 2 + 1) - step;
  }
  const __u32 one_in = hr_stacks_one_in(now);
  if (one_in > 1 && bpf_get_prandom_u32() % one_in) return 0;
  return (HR_QUANTUM_NS / 16 * one_in) / (step / 256 + 1);
}

/* Begins the note of a switch, or finds the one that the other program began: `open` says which. */
HR_VERIFIED_ONCE_OR_INLINED int hr_note_switch(struct hr_switch_note* note, __u32 prev,
                                               __u32 next) {
  if (!note) return 0;
  /* A note of the switch before is of other threads: it ended with this one's `prev`. */
  if (note->open && note->prev == prev && note->next == next) {
    note->open = 0;
    return 0;
  }
  note->prev = prev;
  note->next = next;
  note->open = 1;
  note->weight = 0;
  note->off_ns = 0;
  return 0;
}

/* After hr_note_switch: whether this is the first program to see it; the note is empty then. Read
 * anew at each use, so that the verifier does not walk twice what lies between two of them. */
static __always_inline bool hr_sees_first(const struct hr_switch_note* note) {
  return *(const volatile __u32*)&note->open;
}

/* The thread blocks. */
HR_VERIFIED_ONCE_OR_INLINED int hr_note_block(struct hr_switch_note* note,
                                              struct hr_thread_state* t, __u64 now) {
  if (!note || !t) return 0;
  t->stack_weight = 0; /* until it has been taken */
  note->weight = hr_weight_of_stack(t, now);
  t->blocked_ns = now;
  t->blocked = 1;
  return 0;
}

/* The thread runs again, which may have been blocked. */
HR_VERIFIED_ONCE_OR_INLINED int hr_note_resume(struct hr_switch_note* note,
                                               struct hr_thread_state* t, __u64 now) {
  if (!note || !t || !t->blocked) return 0;
  t->blocked = 0;
  __u64 end = now;
  if (t->woken_ns > t->blocked_ns && t->woken_ns < end) end = t->woken_ns;
  const __u64 ns = end - t->blocked_ns;
  /* A sleep of minutes is forgotten after some short periods. */
  const __u32 recent = ns < 2 * HR_QUANTUM_NS ? (__u32)ns : 2 * HR_QUANTUM_NS;
  t->usual_off_ns = t->usual_off_ns ? t->usual_off_ns / 4 * 3 + recent / 4 : recent;
  if (t->stack_weight || ns > HR_QUANTUM_NS) note->off_ns = ns ? ns : 1;
  return 0;
}

static __always_inline struct hr_switch_note* hr_note_here(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&switch_notes, &zero);
}

/* Whether a thread that is switched out in `state` blocks. */
static __always_inline bool hr_blocks(bool preempted, unsigned int state) {
  return !preempted && state != 0 && !(state & kTaskDead);
}

#endif /* HEADRACE_PROBES_BPF_SWITCH_NOTE_BPF_H_ */
