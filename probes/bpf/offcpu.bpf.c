/* Time off the CPU of the target's threads, by operator, cause, and what the operator was doing;
 * time on it by thread; how long ready threads waited for a CPU; who woke whom.
 *
 * A period begins at the switch-out, where the thread is still current: its operator word and the
 * cause are read there and kept. It ends blocked at the wake-up, runnable at the switch-in; at the
 * next switch-out both parts are credited to the kept word: in the thread's own state first, which
 * costs a fraction of an entry that all CPUs write. What is not yet in the maps is added by user
 * space (offcpu.cc), which finds it in `threads`. */
#include "probes/bpf/switch_note.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct off_key {
  __u32 tgid;
  __u32 word;
  enum hr_cause cause;
  char comm[16]; /* of the thread */
  __u32 first;   /* 1: it is the first of its process */
};
struct off_value {
  __u64 blocked_ns, blocked_count;
  __u64 runnable_ns, runnable_count;
  __u64 timed_out_ns; /* of blocked_ns: in polls that their time limits ended */
};
HR_OUTPUT(off_cpu, off_key, off_value, 8192);
__u64 lost_off_cpu_periods_count = 0;
__u64 lost_switches_count = 0;

struct thread_key {
  __u32 tgid;
  char comm[16];
  __u32 first;
};
struct thread_value {
  __u64 on_cpu_ns; /* all of ended threads; living ones carry theirs in `threads` */
  __u64 voluntary_count, involuntary_count;
};
HR_OUTPUT(thread_times, thread_key, thread_value, 8192);
__u64 lost_thread_times_count = 0;

struct queue_key {
  __u32 tgid;
  __u32 bucket; /* floor(log2(ns)) */
};
struct queue_value {
  __u64 waits_count;
};
HR_OUTPUT(run_queue, queue_key, queue_value, 8192);
__u64 lost_run_queue_waits_count = 0;

struct wakeup_key {
  __u32 waker_tgid, tgid;
  enum hr_cause cause;
  char waker_comm[16];
  char comm[16];
  __u32 waker_first, first;
};
struct wakeup_value {
  __u64 wakeups_count;
  __u64 wait_ns; /* that the woken thread had waited */
};
HR_OUTPUT(wakeups, wakeup_key, wakeup_value, 8192);
__u64 lost_wakeups_count = 0;

static __always_inline void fill_thread_key(struct thread_key* key, struct hr_thread_state* t) {
  key->tgid = t->tgid;
  __builtin_memcpy(key->comm, t->comm, sizeof key->comm);
  key->first = t->first;
}

/* Moves the thread's sums of one kind of period to the map. */
HR_VERIFIED_ONCE_OR_CALLED int move_credit(struct hr_thread_state* t, __u32 i) {
  if (!t || i >= HR_CREDITS) return 0;
  struct hr_credit* credit = &t->credits[i];
  if (!credit->runnable_count) return 0;
  struct off_key key = {};
  key.tgid = t->tgid;
  key.word = credit->word;
  key.cause = credit->cause;
  __builtin_memcpy(key.comm, t->credit_comm, sizeof key.comm);
  key.first = t->credit_first;
  struct off_value zero = {};
  struct off_value* value = HR_VALUE(&off_cpu, &key, &zero, &lost_off_cpu_periods_count);
  if (!value) { /* one has been counted */
    __sync_fetch_and_add(&lost_off_cpu_periods_count, credit->runnable_count - 1);
  } else {
    __sync_fetch_and_add(&value->blocked_ns, credit->blocked_ns);
    __sync_fetch_and_add(&value->blocked_count, credit->blocked_count);
    __sync_fetch_and_add(&value->runnable_ns, credit->runnable_ns);
    __sync_fetch_and_add(&value->runnable_count, credit->runnable_count);
    __sync_fetch_and_add(&value->timed_out_ns, credit->timed_out_ns);
  }
  struct hr_credit none = {};
  *credit = none;
  return 0;
}

/* All of them; `now`: when. */
HR_VERIFIED_ONCE_OR_CALLED int move_credits(struct hr_thread_state* t, __u64 now) {
  if (!t) return 0;
  for (__u32 i = 0; i < HR_CREDITS; i++) move_credit(t, i);
  t->credited_ns = now;
  return 0;
}

/* An ended thread's figures move to its group's. */
HR_VERIFIED_ONCE_OR_CALLED int fold(struct hr_thread_state* t, __u64 now) {
  if (!t) return 0;
  move_credits(t, now);
  for (__u32 i = 0; i < HR_QUEUE_BUCKETS; i++) {
    if (!t->queue_waits[i]) continue;
    struct queue_key queue = {.tgid = t->tgid, .bucket = i};
    struct queue_value none = {};
    struct queue_value* waits = HR_VALUE(&run_queue, &queue, &none, &lost_run_queue_waits_count);
    __u32 more = t->queue_waits[i];
    __sync_fetch_and_add(waits ? &waits->waits_count : &lost_run_queue_waits_count,
                         waits ? more : more - 1);
  }
  struct thread_key key = {};
  fill_thread_key(&key, t);
  struct thread_value zero = {};
  struct thread_value* value = HR_VALUE(&thread_times, &key, &zero, &lost_thread_times_count);
  if (!value) return 0;
  __sync_fetch_and_add(&value->on_cpu_ns, t->on_cpu_ns);
  __sync_fetch_and_add(&value->voluntary_count, t->voluntary_count);
  __sync_fetch_and_add(&value->involuntary_count, t->involuntary_count);
  return 0;
}

/* Credits are moved this often even if nothing else makes them: what a thread whose end is not seen
 * takes with it. */
enum { kCreditNs = 100000000 };

/* Where the credit of a cause is, for one word: apart from those of the causes that it mostly takes
 * turns with. */
static __always_inline __u32 place_of(enum hr_cause cause) {
  if (cause == HR_CAUSE_PREEMPTED || cause == HR_CAUSE_START) return 0;
  if (cause == HR_CAUSE_LOCK || cause == HR_CAUSE_CHILD || cause == HR_CAUSE_STOPPED) return 1;
  return cause == HR_CAUSE_POLL || cause == HR_CAUSE_STORAGE ? 3 : 2;
}

/* Credits the thread's off-CPU period, which ended at `end`. Done at the next switch-out, where the
 * scheduler's sums can confirm it. */
HR_VERIFIED_ONCE_OR_CALLED int end_period(struct hr_thread_state* t, __u64 end) {
  if (!t) return 0;
  __u64 since = t->off_since_ns;
  if (!since) return 0;
  t->off_since_ns = 0;
  if (end < since) end = since;
  __u64 woken = t->woken_ns ? t->woken_ns : end;
  if (woken < since) woken = since;
  if (woken > end) woken = end;
  const __u64 *called = (const __u64*)t->off_comm, *known = (const __u64*)t->credit_comm;
  if (called[0] != known[0] || called[1] != known[1] || t->off_first != t->credit_first) {
    move_credits(t, end);
    __builtin_memcpy(t->credit_comm, t->off_comm, sizeof t->credit_comm);
    t->credit_first = t->off_first;
  } else if (end - t->credited_ns > kCreditNs) {
    move_credits(t, end);
  }
  __u32 i = (t->word + 3 * (t->word >> 16) + place_of(t->cause)) % HR_CREDITS;
  struct hr_credit* credit = &t->credits[i];
  if (credit->word != t->word || credit->cause != t->cause) {
    move_credit(t, i);
    credit->word = t->word;
    credit->cause = t->cause;
  }
  if (woken > since) {
    credit->blocked_ns += woken - since;
    credit->blocked_count++;
    if (t->timed_out) credit->timed_out_ns += woken - since;
  }
  credit->runnable_ns += end - woken;
  credit->runnable_count++;
  __u32 bucket = hr_log2(end - woken);
  t->queue_waits[bucket < HR_QUEUE_BUCKETS ? bucket : HR_QUEUE_BUCKETS - 1]++;
  return 0;
}

/* `tid` is the number that `t` was found by: that of a first thread which ends may be another's by
 * now, if that executes an image. */
static __noinline int switched_out(struct hr_thread_state* t, struct task_struct* task, __u64 now,
                                   int preempted, __u32 tid) {
  if (!t || !task) return 0;
  unsigned int state = task_state(task);
  __u64 ran = task->se.sum_exec_runtime;
  __u64 delayed = 0;
  if (bpf_core_field_exists(task->sched_info.run_delay)) delayed = task->sched_info.run_delay;
  __u64 on_since = t->on_since_ns, since = t->off_since_ns;
  if (since) {
    /* The period before this time on the CPU, as the scheduler's own sums have it: how long the
     * thread has run since its last switch-out, and how long it has waited for a CPU. Kernels were
     * seen to skip our programs now and then, and a CPU that comes out of a sleep takes
     * microseconds to come to them: those are the thread's by its own CPU clock. That clock lacks
     * what a hypervisor or an interrupt took, which is not time off the CPU either. */
    __u64 off = now - since, run = ran - t->ran_ns;
    __u64 by_clock = run < off ? now - run : since;
    if (!on_since || by_clock < on_since) on_since = by_clock;
    __u64 wait = delayed - t->delayed_ns;
    /* One that was never blocked was ready from the beginning. */
    if (delayed && t->woken_ns != since)
      t->woken_ns = wait < on_since - since ? on_since - wait : since;
    end_period(t, on_since);
  }
  *(volatile __u64*)&t->on_since_ns = 0;
  if (on_since && now > on_since) *(volatile __u64*)&t->on_cpu_ns += now - on_since;
  t->ran_ns = ran;
  t->delayed_ns = delayed;
  hr_take_name(t, task); /* it may have given itself another one */
  if (state & kTaskDead) {
    fold(t, now);
    bpf_map_delete_elem(&threads, &tid);
    return 0;
  }
  t->word = hr_current_word(t);
  int runnable = preempted || state == 0;
  t->cause = runnable ? HR_CAUSE_PREEMPTED : cause_of(task, state);
  t->timed_out = 0;
  t->woken_ns = runnable ? now : 0;
  hr_goes_off(t, now);
  if (runnable)
    t->involuntary_count++;
  else
    t->voluntary_count++;
  return 0;
}

static __always_inline void switched_in(struct hr_thread_state* t, __u64 now) {
  /* Its switch-out was not seen: what it did then is not known. */
  if (t->on_since_ns) __sync_fetch_and_add(&lost_switches_count, 1);
  t->on_since_ns = now;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  __u32 tid = prev->pid, next_tid = next->pid;
  struct hr_switch_note* note = hr_note_here();
  if (!note) return 0;
  __u64 now = 0;
  struct hr_thread_state* t = hr_target_thread(prev);
  if (t) {
    now = bpf_ktime_get_ns();
    hr_note_switch(note, tid, next_tid);
    if (hr_sees_first(note) && hr_blocks(preempt, task_state(prev))) hr_note_block(note, t, now);
    switched_out(t, prev, now, preempt, tid);
  }
  t = hr_target_thread(next);
  if (t) {
    if (!now) {
      now = bpf_ktime_get_ns();
      hr_note_switch(note, tid, next_tid);
    }
    if (hr_sees_first(note)) hr_note_resume(note, t, now);
    switched_in(t, now);
  }
  return 0;
}

/* The state of a target's thread that is off the CPU and not yet woken; else null. */
static __always_inline struct hr_thread_state* sleeping(struct task_struct* task) {
  __u32 tgid = task->tgid, tid = task->pid;
  if (!hr_may_be_target(tgid)) return 0;
  struct hr_thread_state* t = bpf_map_lookup_elem(&threads, &tid);
  if (!t || t->tgid != tgid || !t->off_since_ns || t->on_since_ns || t->woken_ns) return 0;
  return t;
}

/* Whether the current task, in whose context a futex wait ends, ended it: by a futex, semaphore or
 * file lock call, or by its own end. Otherwise a timer did, in an interrupt of anyone. */
static __always_inline bool current_unlocks(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  if (task->pid == 0) return false;
  struct pt_regs* registers = (struct pt_regs*)bpf_task_pt_regs(task);
  if (!registers) return true;
#if defined(__TARGET_ARCH_x86)
  switch ((int)registers->orig_ax) {
    case 202: /* futex */
    case 454: /* futex_wake */
    case 456: /* futex_requeue */
    case 65:  /* semop */
    case 220: /* semtimedop */
    case 60:  /* exit */
    case 231: /* exit_group */
    case 72:  /* fcntl, for a lock on a file */
    case 73:  /* flock */
    case 3:   /* close, which lets go of such locks */
      return true;
  }
#else
  switch (((struct pt_regs___hr_arm64*)registers)->syscallno) {
    case 98:  /* futex */
    case 454: /* futex_wake */
    case 456: /* futex_requeue */
    case 193: /* semop */
    case 192: /* semtimedop */
    case 93:  /* exit */
    case 94:  /* exit_group */
    case 25:  /* fcntl, for a lock on a file */
    case 32:  /* flock */
    case 57:  /* close, which lets go of such locks */
      return true;
  }
#endif
  return false;
}

/* Whether a timer ends the wait that ends here: its function is on the stack of the interrupt, at
 * most this deep below ours, and no longer than that on any kernel that we know. Who is in a system
 * call ends it by that. */
const volatile __u64 timer_wakeup_address = 0; /* of hrtimer_wakeup(); 0: not known */
enum { kInterruptDepth = 12, kTimerFunctionBytes = 64 };
static __always_inline bool timer_wakes(void* ctx) {
  __u64 begin = timer_wakeup_address;
  if (!begin) return false;
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* registers = (struct pt_regs*)bpf_task_pt_regs(task);
  if (task->pid != 0 && registers) {
#if defined(__TARGET_ARCH_x86)
    if ((long)registers->orig_ax >= 0) return false;
#else
    if (((struct pt_regs___hr_arm64*)registers)->syscallno >= 0) return false;
#endif
  }
  __u64 frames[kInterruptDepth] = {};
  long bytes = bpf_get_stack(ctx, frames, sizeof frames, 0);
  for (int i = 0; i < kInterruptDepth; i++) {
    if ((i + 1) * (long)sizeof(__u64) > bytes) break;
    if (frames[i] - begin < kTimerFunctionBytes) return true;
  }
  return false;
}

/* How much this wake-up counts; 0: it is not noted. Of a thread that is woken much more often than
 * kWakeupsInWindow in a window, one in some of those after short waits is noted, by chance, and
 * counts for all of them. */
enum { kWakeupWindowNs = 20000000, kWakeupsInWindow = 10, kLongWaitNs = 1000000 };
static __always_inline __u32 weight_of_wakeup(struct hr_thread_state* t, __u64 now, __u64 waited) {
  if (now - t->wakeups_since_ns > kWakeupWindowNs) {
    __u64 length = now - t->wakeups_since_ns;
    t->wakeups_one_in = length < 2 * kWakeupWindowNs ? t->wakeups_seen / kWakeupsInWindow : 1;
    t->wakeups_since_ns = now;
    t->wakeups_seen = 0;
  }
  t->wakeups_seen++;
  __u32 one_in = t->wakeups_one_in;
  if (waited > kLongWaitNs || one_in <= 1) return 1;
  return bpf_get_prandom_u32() % one_in ? 0 : one_in;
}

/* sched_wakeup of a thread on another CPU may come there, in an interrupt of whoever runs; this one
 * comes in the waker's own context, and a little earlier: switched_out() knows how long the thread
 * was ready. */
static __always_inline int waking(void* ctx, struct task_struct* task) {
  struct hr_thread_state* t = sleeping(task);
  if (!t) return 0;
  __u64 now = bpf_ktime_get_ns();
  t->woken_ns = now;
  /* A wait with a time-out that ran out was a sleep, whatever it waited for. */
  if (t->cause == HR_CAUSE_LOCK && !current_unlocks()) t->cause = HR_CAUSE_SLEEP;
  /* Of a poll it is counted apart: it may have been one slice of a wait for data. */
  if (t->cause == HR_CAUSE_POLL && timer_wakes(ctx)) {
    t->timed_out = 1;
    return 0;
  }
  /* The current task is the waker only if it is doing something for itself: a lock, a pipe or a
   * socket it writes, a child it ends. Devices and timers wake from interrupts of anyone. */
  __u32 cause = t->cause;
  if (cause == HR_CAUSE_STORAGE || cause == HR_CAUSE_SLEEP || cause == HR_CAUSE_FAULT ||
      cause == HR_CAUSE_NETWORK || cause == HR_CAUSE_OTHER || cause == HR_CAUSE_STOPPED)
    return 0;
  __u64 waited = now > t->off_since_ns ? now - t->off_since_ns : 0;
  __u32 weight = weight_of_wakeup(t, now, waited);
  if (!weight) return 0;
  struct hr_thread_state* waker = hr_target_thread(bpf_get_current_task_btf());
  if (!waker) return 0;
  struct wakeup_key key = {};
  key.waker_tgid = waker->tgid;
  key.waker_first = waker->first;
  key.tgid = t->tgid;
  key.cause = cause;
  __builtin_memcpy(key.waker_comm, waker->comm, sizeof key.waker_comm);
  __builtin_memcpy(key.comm, t->comm, sizeof key.comm);
  key.first = t->first;
  struct wakeup_value zero = {};
  struct wakeup_value* value = HR_VALUE(&wakeups, &key, &zero, &lost_wakeups_count);
  if (!value) { /* one has been counted */
    __sync_fetch_and_add(&lost_wakeups_count, weight - 1);
    return 0;
  }
  __sync_fetch_and_add(&value->wakeups_count, weight);
  __sync_fetch_and_add(&value->wait_ns, waited * weight);
  return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* task) { return waking(ctx, task); }

struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

/* Run once over all tasks when the probe starts: threads that are blocked or stopped already, and
 * may stay so.
 * What a thread with accounts is doing cannot be read from here, so those are left to their next
 * switch. */
SEC("iter/task")
int on_start(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;
  struct hr_target* target = hr_target_of(task->tgid);
  if (!target || target->segment_address) return 0;
  unsigned int state = task_state(task);
  if (!(state & (kInterruptible | kUninterruptible | kStopped | kTraced))) return 0;
  __u32 tid = task->pid;
  if (bpf_map_lookup_elem(&threads, &tid)) return 0;
  struct hr_thread_state* t = hr_thread(task);
  if (!t || t->on_since_ns) return 0;
  t->ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
  if (bpf_core_field_exists(task->sched_info.run_delay))
    t->delayed_ns = BPF_CORE_READ(task, sched_info.run_delay);
  t->cause = cause_of(task, state);
  hr_goes_off(t, bpf_ktime_get_ns());
  return 0;
}
