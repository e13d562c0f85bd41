/* headrace operator accounts: counters a data pipeline keeps about itself, readable by any other
 * process while it runs. C11 and C++, no dependency but libc and POSIX threads, header only.
 *
 *   hr_account_open("my_reader");
 *   uint32_t stage = hr_stage("decode", 2, 0);
 *   uint32_t op = hr_operator("decode", "decode", stage);
 *   ... in each thread of the stage ...
 *   hr_thread_begin(stage);
 *   hr_enter(op); work(); hr_leave(); hr_done(op, 1, rows, bytes_in, bytes_out);
 *   hr_thread_end();
 *
 * Then `headrace profile -p PID` shows the operators. The counters live in a file of shared memory,
 * /dev/shm/headrace.<pid> ($HEADRACE_ACCOUNT_DIR replaces /dev/shm), mode 0600, removed at exit;
 * where another container's process of that number has one there, headrace.<pid>.<pid namespace>.
 * Its layout is the ABI described in docs/accounts.md. A reader may come, go or die at any time;
 * the pipeline does not notice.
 *
 * Time of a thread is split exclusively: a nested operator stops its parent's clock, a wait stops
 * the operator's. Entering or leaving costs one time-stamp read and a few stores: no system call,
 * no lock, no allocation. HEADRACE_ACCOUNTS=off makes every call a load, a branch and a return.
 * HEADRACE_ACCOUNT_LEVEL=1 leaves the CPU clock alone; 2, the default, reads it at both ends of
 * long visits (hr_is_long_), whose CPU time is so known exactly. Between short visits it is read
 * every 0.1 to 1 ms (hr_cpu_period_ticks_): what each operator used of the CPU time in between is
 * not known, but it lies between bounds, which are summed up beside an estimate (hr_cpu_bounds_).
 *
 * Threads: every function may be called from any thread, except that hr_queue_level and
 * hr_queue_capacity of one queue must be called under that queue's own mutex. Limits are counted
 * when exceeded, never fatal: what does not fit is left out and the loss is shown.
 *
 * C files: include this header before any other, or compile with -D_GNU_SOURCE or -std=gnu11.
 */
#ifndef HEADRACE_PROBES_ACCOUNT_ACCOUNT_H_
#define HEADRACE_PROBES_ACCOUNT_ACCOUNT_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#ifndef CLOCK_THREAD_CPUTIME_ID
#error "include headrace/account.h before any other header, or define _GNU_SOURCE"
#endif

#ifdef __cplusplus
#define HR_STATIC_ASSERT static_assert
extern "C" {
#else
#define HR_STATIC_ASSERT _Static_assert
#endif

/* ---- Layout: the ABI, version 1 (docs/accounts.md). All integers little-endian on x86 and Arm. --
 */

#define HR_ACCOUNT_MAGIC UINT64_C(0x3130414543445248) /* "HRDCEA01" in memory */
#define HR_ACCOUNT_ABI 1u
#define HR_ACCOUNT_ABI_MINOR 1u /* 0: blocks end at out_bytes; 1: they hold bounds of cpu_ns */
enum {
  HR_MAX_STAGES = 64,
  HR_MAX_OPERATORS = 256,
  HR_MAX_QUEUES = 64,
  HR_MAX_RESOURCES = 64,
  HR_MAX_THREADS = 512, /* alive at the same time; slots of ended threads are used again */
  HR_MAX_DEPTH = 24,    /* nested enters and waits */
  HR_MAX_HELD = 6,      /* resources one thread holds at the same time */
  HR_STEP_RECORDS = 4096
};
#define HR_NONE UINT32_MAX /* "no stage", "no operator"; also what registering gives when full */

enum { HR_CLOCK_MONOTONIC = 0, HR_CLOCK_TSC = 1 };
enum { HR_STATE_OPEN = 1, HR_STATE_CLOSED = 2 };
enum { HR_WAIT_IN = 1, HR_WAIT_OUT = 2 };
enum { HR_LOCK = 0, HR_DEVICE = 1, HR_MEMORY = 2 };
/* Index of a block's ticks: what the thread was doing. */
enum { HR_BUSY = 0, HR_WAITING_IN = 1, HR_WAITING_OUT = 2, HR_WAITING_RESOURCE = 3 };

struct hr_header { /* offset 0, 4096 bytes */
  uint64_t magic;
  uint32_t abi_version;
  uint32_t state;         /* HR_STATE_*; 0 until everything below is written */
  uint64_t segment_size;  /* bytes */
  uint32_t pid;           /* as the process itself has it */
  uint32_t level;         /* 1 or 2 */
  uint32_t clock_kind;    /* HR_CLOCK_*: what a tick is */
  uint32_t pid_namespace; /* in which it has that pid: inode of /proc/self/ns/pid; 0: not known */
  uint64_t ticks_per_second;  /* calibrated over 2 ms at open; readers refine it */
  uint64_t base_ticks;        /* the same instant in ticks ... */
  uint64_t base_monotonic_ns; /* ... and on CLOCK_MONOTONIC ... */
  uint64_t base_realtime_ns;  /* ... and CLOCK_REALTIME */
  uint32_t num_stages;        /* entries in use of each table */
  uint32_t num_operators;
  uint32_t num_queues;
  uint32_t num_resources;
  uint32_t num_slots;   /* highest slot ever used + 1 */
  uint32_t abi_minor;   /* HR_ACCOUNT_ABI_MINOR of the writer: what of the reserved bytes it uses */
  uint64_t folds_begun; /* threads that began to leave their slot; differs from folds_done */
  uint64_t folds_done;  /* while one is moving its figures into its stage */
  uint64_t stages_lost; /* registrations and threads beyond the limits */
  uint64_t operators_lost;
  uint64_t queues_lost;
  uint64_t resources_lost;
  uint64_t threads_lost;
  uint64_t frames_lost; /* enters deeper than HR_MAX_DEPTH: their time is the parent's */
  uint64_t steps_count; /* all steps, in the ring or not */
  uint64_t step_rows_count;
  uint64_t step_wait_ns;
  uint64_t step_compute_ns;
  char program[64];
  uint8_t reserved2[3840];
};

struct hr_stage_entry { /* 256 bytes; entry HR_MAX_STAGES is "no stage" */
  char name[64];
  uint32_t parallelism;
  uint32_t max_parallelism;   /* 0 = no limit, 1 = sequential */
  uint64_t since_ticks;       /* of the present parallelism */
  uint64_t parallelism_ticks; /* integral of parallelism over time up to since_ticks */
  /* Sums over threads that left the stage: */
  uint64_t threads_count;
  uint64_t lifetime_ticks;
  uint64_t unattributed_ticks; /* outside every operator */
  uint64_t unattributed_cpu_ns;
  uint64_t on_cpu_ns;   /* CLOCK_THREAD_CPUTIME_ID between joining and leaving */
  uint64_t runnable_ns; /* waiting for a CPU: second field of schedstat */
  uint64_t begin_ticks; /* when the stage was registered */
  uint8_t reserved[112];
};

struct hr_operator_entry { /* 128 bytes */
  char name[64];
  char kind[32];
  uint32_t stage; /* index, or HR_NONE */
  uint8_t reserved[28];
};

struct hr_queue_entry { /* 256 bytes; written under the queue's mutex */
  char name[64];
  uint32_t producer_stage;
  uint32_t consumer_stage;
  uint32_t capacity;
  uint32_t occupancy;
  uint32_t sequence; /* odd while being written */
  uint32_t reserved0;
  uint64_t since_ticks; /* the integrals below hold up to here */
  uint64_t observed_ticks;
  uint64_t occupancy_ticks; /* integral of occupancy */
  uint64_t capacity_ticks;  /* integral of capacity */
  uint64_t full_ticks;      /* time at occupancy >= capacity */
  uint64_t empty_ticks;     /* time at occupancy 0 */
  uint64_t puts_count;
  uint64_t gets_count;
  uint8_t reserved[104];
};

struct hr_resource_entry { /* 128 bytes; atomically added to by any thread */
  char name[64];
  uint32_t kind; /* HR_LOCK, HR_DEVICE, HR_MEMORY */
  uint32_t servers;
  uint64_t acquisitions_count;
  uint64_t wait_ticks;
  uint64_t hold_ticks;
  uint64_t moved_bytes;
  uint8_t reserved[24];
};

struct hr_step_record { /* 64 bytes; record of step n is at n % HR_STEP_RECORDS */
  uint64_t sequence;    /* n + 1 when whole, 0 while being written */
  uint64_t end_ticks;
  uint64_t wait_ns;
  uint64_t compute_ns;
  uint64_t rows_count;
  uint8_t reserved[24];
};

struct hr_block { /* 128 bytes: one operator on one thread; block 0 is "outside every operator" */
  uint64_t ticks[4]; /* HR_BUSY, HR_WAITING_*; busy does not contain the waits */
  uint64_t cpu_ns;   /* level 2: on a CPU up to the thread's last reading; an estimate ... */
  uint64_t shared_busy_ticks; /* ticks[HR_BUSY] at that reading */
  uint64_t enters_count;
  uint64_t completions_count;
  uint64_t rows_count;
  uint64_t in_bytes;
  uint64_t out_bytes;
  uint64_t cpu_low_ns; /* ... and what it lies between, from minor version 1 on */
  uint64_t cpu_high_ns;
  uint64_t shared_lock_ticks; /* ticks[HR_WAITING_RESOURCE] at that reading */
  uint32_t long_modes; /* bit i: what ticks[i] was last credited with was long; the thread's */
  uint32_t reserved0;
  uint64_t reserved;
};

struct hr_held {
  uint32_t resource;
  uint32_t reserved;
  uint64_t since_ticks;
};

struct hr_slot {     /* 36864 bytes: one thread; single writer, the thread itself */
  uint32_t sequence; /* odd while current, since_ticks and ticks change together */
  uint32_t used;     /* 0 free, 1 a thread owns it */
  uint32_t tid;
  uint32_t stage; /* index, or HR_MAX_STAGES for "no stage" */
  /* What the thread is doing now: bits 0-15 operator + 1 (0 = none), bits 16-17 index of ticks,
   * bits 20-31 resource + 1 while waiting for one. Naturally aligned: a probe may read it alone. */
  uint32_t current;
  uint32_t depth;
  uint64_t since_ticks;       /* of `current`; everything before is in the blocks */
  uint64_t begin_ticks;       /* when this thread took the slot */
  uint64_t begin_cpu_ns;      /* its CPU clock then */
  uint64_t begin_runnable_ns; /* its run-queue time then */
  uint64_t cpu_ns;            /* last reading of its CPU clock ... */
  uint64_t cpu_ticks;         /* ... and when */
  uint32_t num_held;
  uint32_t schedstat; /* 1 when begin_runnable_ns could be read */
  uint32_t stack[HR_MAX_DEPTH];
  struct hr_held held[HR_MAX_HELD];
  uint8_t reserved[240];
  struct hr_block blocks[HR_MAX_OPERATORS + 1];
  uint8_t reserved2[3456];
};

struct hr_segment {
  struct hr_header header;
  struct hr_stage_entry stages[HR_MAX_STAGES + 1];
  struct hr_operator_entry operators[HR_MAX_OPERATORS];
  struct hr_queue_entry queues[HR_MAX_QUEUES];
  struct hr_resource_entry resources[HR_MAX_RESOURCES];
  uint8_t reserved[3840]; /* the slots begin on a page */
  struct hr_step_record steps[HR_STEP_RECORDS];
  struct hr_slot slots[HR_MAX_THREADS];
};

HR_STATIC_ASSERT(sizeof(struct hr_header) == 4096, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_header, program) == 192, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_stage_entry) == 256, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_operator_entry) == 128, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_queue_entry) == 256, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_resource_entry) == 128, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_step_record) == 64, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_header, abi_minor) == 92, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_block) == 128, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_block, cpu_low_ns) == 88, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_block, long_modes) == 112, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_slot, current) == 16, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_slot, stack) == 80, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_slot, blocks) == 512, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_slot) == 36864, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, stages) == 4096, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, operators) == 20736, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, queues) == 53504, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, resources) == 69888, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, steps) == 81920, "ABI");
HR_STATIC_ASSERT(offsetof(struct hr_segment, slots) == 344064, "ABI");
HR_STATIC_ASSERT(sizeof(struct hr_segment) == 19218432, "ABI");

/* ---- Process and thread state: one weak global and one weak thread-local, shared by all files. --
 */

struct hr_process {
  struct hr_segment* segment; /* null: accounts are off */
  uint32_t generation;        /* of the segment; a thread's slot belongs to one generation */
  uint32_t clock_kind;
  uint32_t level;
  uint32_t table_lock;
  uint64_t cpu_period_ticks; /* between readings of a thread's CPU clock */
  int fd;
  uint32_t installed; /* exit, fork and thread-exit handlers are in place */
  uint32_t pid;
  pthread_key_t key;
  char path[256];
};
struct hr_thread {
  struct hr_slot* slot;
  uint32_t generation;
  uint16_t first_block, last_block; /* credited since the CPU clock was read; first > last: none */
};
__attribute__((weak)) struct hr_process hr_process_v1;
__attribute__((weak)) __thread struct hr_thread hr_thread_v1;

/* ---- Inside: functions ending in _ are not part of the interface. ---- */

#define HR_LOAD_(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define HR_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE) /* a plain store on x86 */
#define HR_ADD_(p, v) HR_STORE_((p), HR_LOAD_(p) + (v))              /* single writer */
/* A call at every border would spill the registers of the code around it; readings are rare. */
#define HR_INLINE_ __attribute__((always_inline))
#define HR_RARE_ __attribute__((cold, noinline, unused))
#define HR_SHARED_ADD_(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

static inline uint64_t hr_clock_ns_(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t hr_ticks_of_kind_(uint32_t clock_kind) {
#if defined(__x86_64__)
  if (__builtin_expect(clock_kind == HR_CLOCK_TSC, 1)) return __builtin_ia32_rdtsc();
#endif
  (void)clock_kind;
  return hr_clock_ns_(CLOCK_MONOTONIC);
}
static inline uint64_t hr_ticks_(void) { return hr_ticks_of_kind_(hr_process_v1.clock_kind); }

/* The time-stamp counter is usable when it runs at one rate through all power states. */
static inline int hr_tsc_is_invariant_(void) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
  return 0;
#endif
}

static inline struct hr_segment* hr_segment_(void) {
  return __atomic_load_n(&hr_process_v1.segment, __ATOMIC_ACQUIRE);
}

static inline void hr_lock_tables_(void) {
  while (__atomic_exchange_n(&hr_process_v1.table_lock, 1u, __ATOMIC_ACQUIRE)) usleep(1);
}
static inline void hr_unlock_tables_(void) {
  __atomic_store_n(&hr_process_v1.table_lock, 0u, __ATOMIC_RELEASE);
}

static inline void hr_copy_name_(char* to, size_t size, const char* from) {
  size_t n = from ? strlen(from) : 0;
  if (n >= size) n = size - 1;
  if (n) memcpy(to, from, n);
  to[n] = 0;
}
static inline int hr_same_name_(const char* stored, size_t size, const char* name) {
  return strncmp(stored, name ? name : "", size - 1) == 0;
}

/* Run-queue time of the calling thread; 0 when it cannot be read. */
static inline int hr_read_runnable_(uint64_t* runnable_ns) {
  char text[96];
  unsigned long long on_cpu = 0, runnable = 0;
  int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  ssize_t n;
  *runnable_ns = 0;
  if (fd < 0) return 0;
  n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  if (sscanf(text, "%llu %llu", &on_cpu, &runnable) != 2) return 0;
  *runnable_ns = runnable;
  return 1;
}

/* Bounds of the CPU time of one operator in a window of a thread's life: of `window_ns`, in which
 * the thread was on a CPU for `cpu_ns`, it was inside the operator for `inside_ns`. The operator
 * had all that the rest of the window has no room for, and no more than there was. */
static inline void hr_cpu_bounds_(uint64_t cpu_ns, uint64_t window_ns, uint64_t inside_ns,
                                  uint64_t* low_ns, uint64_t* high_ns) {
  const uint64_t rest_ns = window_ns > inside_ns ? window_ns - inside_ns : 0;
  const uint64_t most_ns = cpu_ns < inside_ns ? cpu_ns : inside_ns;
  const uint64_t least_ns = cpu_ns > rest_ns ? cpu_ns - rest_ns : 0;
  *low_ns = least_ns < most_ns ? least_ns : most_ns;
  *high_ns = most_ns;
}

/* Time inside the operator of a block, waits for resources included, since the last reading. */
static inline uint64_t hr_inside_ticks_(const struct hr_block* b) {
  const uint64_t busy = b->ticks[HR_BUSY], lock = b->ticks[HR_WAITING_RESOURCE];
  return (busy > b->shared_busy_ticks ? busy - b->shared_busy_ticks : 0) +
         (lock > b->shared_lock_ticks ? lock - b->shared_lock_ticks : 0);
}

/* Reads the CPU clock and books the time since the last reading: to each operator its bounds, and
 * as an estimate its share of the time inside operators. One operator alone in the window has both
 * bounds in one place. The rest is the kernel's part of waiting.
 * Looks only at blocks that were credited since then: the others are no longer in the cache. */
static HR_RARE_ void hr_share_cpu_(const struct hr_segment* g, struct hr_slot* s, uint64_t now) {
  struct hr_thread* t = &hr_thread_v1;
  const double ns_per_tick = 1e9 / (double)g->header.ticks_per_second;
  const uint64_t cpu = hr_clock_ns_(CLOCK_THREAD_CPUTIME_ID);
  const uint64_t delta = cpu > s->cpu_ns ? cpu - s->cpu_ns : 0;
  const uint64_t window =
      now > s->cpu_ticks ? (uint64_t)((double)(now - s->cpu_ticks) * ns_per_tick) : 0;
  uint64_t total = 0, shared = 0;
  uint32_t i, first = t->first_block, n = (uint32_t)t->last_block + 1;
  double share;
  for (i = first; i < n; i++) total += hr_inside_ticks_(&s->blocks[i]);
  share = total ? (double)delta / ((double)total * ns_per_tick) : 0;
  if (share > 1) share = 1;
  for (i = first; i < n; i++) {
    struct hr_block* b = &s->blocks[i];
    const uint64_t inside = (uint64_t)((double)hr_inside_ticks_(b) * ns_per_tick);
    uint64_t low, high, part = (uint64_t)((double)inside * share);
    HR_STORE_(&b->shared_busy_ticks, b->ticks[HR_BUSY]);
    HR_STORE_(&b->shared_lock_ticks, b->ticks[HR_WAITING_RESOURCE]);
    if (inside == 0) continue;
    hr_cpu_bounds_(delta, window, inside, &low, &high);
    HR_ADD_(&b->cpu_ns, part);
    HR_ADD_(&b->cpu_low_ns, low);
    HR_ADD_(&b->cpu_high_ns, high);
    shared += part;
  }
  if (delta > shared) HR_ADD_(&s->blocks[0].cpu_ns, delta - shared);
  HR_STORE_(&s->cpu_ns, cpu);
  HR_STORE_(&s->cpu_ticks, now);
  t->first_block = UINT16_MAX;
  t->last_block = 0;
}

/* Whether the CPU clock is read at both ends of so long a visit or wait: from 200 readings' time on
 * (hr_cpu_period_ticks_ is that of 2000), 10 to 100 us. A visit has two at most. */
static inline int hr_is_long_(uint64_t ticks) {
  return ticks * 10 >= hr_process_v1.cpu_period_ticks;
}

/* Credits the time since the last border to what the thread was doing, then sets what it does now.
 * The CPU clock is read at the end of what was long, where what begins was long the last time, and
 * now and then. */
static inline HR_INLINE_ uint64_t hr_border_(struct hr_slot* s, uint32_t next) {
  uint64_t now = hr_ticks_();
  uint32_t word = s->current, sequence = s->sequence;
  uint64_t since = s->since_ticks;
  uint16_t block = (uint16_t)(word & 0xffffu);
  uint32_t mode = (word >> 16) & 3u, bit = 1u << mode;
  struct hr_block* ended = &s->blocks[block];
  const uint32_t begins_long = s->blocks[next & 0xffffu].long_modes >> ((next >> 16) & 3u) & 1u;
  struct hr_thread* t = &hr_thread_v1;
  int was_long = 0;
  if (block < t->first_block) t->first_block = block;
  if (block > t->last_block) t->last_block = block;
  HR_STORE_(&s->sequence, sequence + 1);
  if (__builtin_expect(now > since, 1)) { /* counters of two cores may differ by a few ticks */
    HR_ADD_(&ended->ticks[mode], now - since);
    HR_STORE_(&s->since_ticks, now);
    was_long = hr_is_long_(now - since);
  }
  HR_STORE_(&s->current, next);
  if (__builtin_expect(was_long != ((ended->long_modes & bit) != 0), 0)) ended->long_modes ^= bit;
  if (__builtin_expect(
          was_long || begins_long ||
              (now - s->cpu_ticks >= hr_process_v1.cpu_period_ticks && now > s->cpu_ticks),
          0)) {
    const struct hr_segment* g = hr_segment_();
    if (g && hr_process_v1.level >= 2) hr_share_cpu_(g, s, now);
  }
  HR_STORE_(&s->sequence, sequence + 2);
  return now;
}

/* Moves the figures of the calling thread into its stage and frees its slot. */
static inline void hr_fold_(struct hr_segment* g, struct hr_slot* s) {
  uint32_t i, stage = s->stage <= HR_MAX_STAGES ? s->stage : (uint32_t)HR_MAX_STAGES;
  struct hr_stage_entry* e = &g->stages[stage];
  uint64_t runnable = 0, unattributed = 0, now;
  int readable = s->schedstat && hr_read_runnable_(&runnable);
  now = hr_border_(s, 0);
  if (hr_process_v1.level >= 2) {
    hr_share_cpu_(g, s, now);
  } else {
    HR_STORE_(&s->cpu_ns, hr_clock_ns_(CLOCK_THREAD_CPUTIME_ID));
  }
  __atomic_fetch_add(&g->header.folds_begun, UINT64_C(1), __ATOMIC_SEQ_CST);
  for (i = 0; i < 4; i++) {
    unattributed += s->blocks[0].ticks[i];
    HR_STORE_(&s->blocks[0].ticks[i], UINT64_C(0));
  }
  HR_SHARED_ADD_(&e->threads_count, UINT64_C(1));
  HR_SHARED_ADD_(&e->lifetime_ticks, s->since_ticks - s->begin_ticks);
  HR_SHARED_ADD_(&e->unattributed_ticks, unattributed);
  HR_SHARED_ADD_(&e->unattributed_cpu_ns, s->blocks[0].cpu_ns);
  HR_SHARED_ADD_(&e->on_cpu_ns, s->cpu_ns - s->begin_cpu_ns);
  if (readable && runnable > s->begin_runnable_ns) {
    HR_SHARED_ADD_(&e->runnable_ns, runnable - s->begin_runnable_ns);
  }
  HR_STORE_(&s->blocks[0].cpu_ns, UINT64_C(0));
  HR_STORE_(&s->blocks[0].cpu_low_ns, UINT64_C(0));
  HR_STORE_(&s->blocks[0].cpu_high_ns, UINT64_C(0));
  HR_STORE_(&s->blocks[0].shared_busy_ticks, UINT64_C(0));
  HR_STORE_(&s->blocks[0].shared_lock_ticks, UINT64_C(0));
  HR_STORE_(&s->tid, 0u);
  __atomic_store_n(&s->used, 0u, __ATOMIC_RELEASE);
  __atomic_fetch_add(&g->header.folds_done, UINT64_C(1), __ATOMIC_SEQ_CST);
}

static inline void hr_thread_exit_(void* unused) {
  struct hr_thread* t = &hr_thread_v1;
  struct hr_segment* g = hr_segment_();
  (void)unused;
  if (g && t->slot && t->generation == hr_process_v1.generation) hr_fold_(g, t->slot);
  t->slot = NULL;
}

/* Gives the calling thread a slot; null when accounts are off or all slots are taken. Asked once
 * per thread and segment, so a refused thread costs no search at every call. */
static inline struct hr_slot* hr_join_(uint32_t stage) {
  struct hr_thread* t = &hr_thread_v1;
  struct hr_segment* g = hr_segment_();
  uint32_t i;
  if (!g) return NULL;
  t->slot = NULL;
  t->generation = hr_process_v1.generation;
  t->first_block = UINT16_MAX;
  t->last_block = 0;
  for (i = 0; i < HR_MAX_THREADS; i++) {
    struct hr_slot* s = &g->slots[i];
    uint32_t expected = 0, high;
    uint64_t now;
    if (HR_LOAD_(&s->used)) continue;
    /* Memory is reserved first: a store into a page that a full /dev/shm cannot give is fatal. */
    if (posix_fallocate(hr_process_v1.fd, (off_t)((char*)s - (char*)g), (off_t)sizeof(*s)) != 0) {
      break;
    }
    if (!__atomic_compare_exchange_n(&s->used, &expected, 1u, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    now = hr_ticks_();
    HR_STORE_(&s->sequence, (s->sequence | 1u));
    HR_STORE_(&s->tid, (uint32_t)syscall(SYS_gettid));
    HR_STORE_(&s->stage, stage < HR_MAX_STAGES ? stage : (uint32_t)HR_MAX_STAGES);
    HR_STORE_(&s->current, 0u);
    s->depth = 0;
    s->num_held = 0;
    HR_STORE_(&s->since_ticks, now);
    HR_STORE_(&s->begin_ticks, now);
    HR_STORE_(&s->cpu_ns, hr_clock_ns_(CLOCK_THREAD_CPUTIME_ID));
    HR_STORE_(&s->cpu_ticks, now);
    HR_STORE_(&s->begin_cpu_ns, s->cpu_ns);
    {
      uint64_t runnable = 0;
      uint32_t readable = (uint32_t)hr_read_runnable_(&runnable);
      HR_STORE_(&s->begin_runnable_ns, runnable);
      HR_STORE_(&s->schedstat, readable);
    }
    HR_STORE_(&s->sequence, s->sequence + 1);
    high = HR_LOAD_(&g->header.num_slots);
    while (high < i + 1 && !__atomic_compare_exchange_n(&g->header.num_slots, &high, i + 1, 0,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    t->slot = s;
    pthread_setspecific(hr_process_v1.key, t); /* its destructor folds the slot at thread exit */
    return s;
  }
  HR_SHARED_ADD_(&g->header.threads_lost, UINT64_C(1));
  return NULL;
}

/* The calling thread's slot, given on first use; null: return at once. */
static inline struct hr_slot* hr_slot_(uint32_t op) {
  struct hr_segment* g = HR_LOAD_(&hr_process_v1.segment);
  struct hr_thread* t;
  if (__builtin_expect(!g, 0)) return NULL;
  t = &hr_thread_v1;
  if (__builtin_expect(t->generation != hr_process_v1.generation, 0)) {
    return hr_join_(op < HR_MAX_OPERATORS ? g->operators[op].stage : HR_NONE);
  }
  return t->slot;
}

static inline void hr_push_(struct hr_slot* s, uint32_t word) {
  uint32_t depth = s->depth++;
  if (__builtin_expect(depth >= HR_MAX_DEPTH, 0)) {
    HR_SHARED_ADD_(&hr_process_v1.segment->header.frames_lost, UINT64_C(1));
    return;
  }
  s->stack[depth] = s->current;
  hr_border_(s, word);
}

static inline void hr_pop_(struct hr_slot* s) {
  if (__builtin_expect(s->depth == 0, 0)) return; /* one leave too many changes nothing */
  if (__builtin_expect(--s->depth >= HR_MAX_DEPTH, 0)) return;
  hr_border_(s, s->stack[s->depth]);
}

static inline void hr_atfork_child_(void) {
  /* The child writes no accounts of its parent; it may call hr_account_open for its own. */
  if (hr_process_v1.segment) close(hr_process_v1.fd);
  hr_process_v1.segment = NULL;
  hr_process_v1.table_lock = 0;
  hr_process_v1.path[0] = 0;
  hr_thread_v1.slot = NULL;
  hr_thread_v1.generation = 0;
}

/* ---- The interface. ---- */

/* Removes the segment and turns accounts off; done at exit by itself. Other threads may be inside
 * other calls: the memory stays mapped. */
static inline void hr_account_close(void) {
  struct hr_segment* g = hr_segment_();
  struct stat own, there;
  if (!g || hr_process_v1.pid != (uint32_t)getpid()) return;
  hr_thread_exit_(NULL);
  __atomic_store_n(&hr_process_v1.segment, (struct hr_segment*)NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&g->header.state, (uint32_t)HR_STATE_CLOSED, __ATOMIC_RELEASE);
  /* Only the file that this process made: another may have taken its name. */
  if (hr_process_v1.path[0] && fstat(hr_process_v1.fd, &own) == 0 &&
      lstat(hr_process_v1.path, &there) == 0 && own.st_ino == there.st_ino &&
      own.st_dev == there.st_dev) {
    unlink(hr_process_v1.path);
  }
  close(hr_process_v1.fd);
}

static inline void hr_calibrate_(struct hr_header* h) {
  uint64_t t0, n0, t1, n1;
  h->clock_kind = hr_tsc_is_invariant_() ? HR_CLOCK_TSC : HR_CLOCK_MONOTONIC;
  n0 = hr_clock_ns_(CLOCK_MONOTONIC);
  t0 = hr_ticks_of_kind_(h->clock_kind);
  h->base_realtime_ns = hr_clock_ns_(CLOCK_REALTIME);
  h->base_ticks = t0;
  h->base_monotonic_ns = n0;
  h->ticks_per_second = UINT64_C(1000000000);
  if (h->clock_kind == HR_CLOCK_MONOTONIC) return;
  do {
    n1 = hr_clock_ns_(CLOCK_MONOTONIC);
    t1 = hr_ticks_of_kind_(h->clock_kind);
  } while (n1 - n0 < 2000000u);
  if (t1 > t0) h->ticks_per_second = (uint64_t)((double)(t1 - t0) * 1e9 / (double)(n1 - n0));
}

/* How often a thread reads its CPU clock where its visits are short: so that it costs about 0.1 %
 * of its time, here and now, but never more often than every 100 us nor less often than every
 * millisecond. A reading between other work costs more than one of many in a row: twice as much is
 * assumed. */
static inline uint64_t hr_cpu_period_ticks_(const struct hr_header* h) {
  uint64_t best = UINT64_C(1000000), period_ns;
  int i;
  for (i = 0; i < 8; i++) { /* the least of some: a thread may be interrupted */
    const uint64_t begin = hr_clock_ns_(CLOCK_MONOTONIC);
    uint64_t cost;
    hr_clock_ns_(CLOCK_THREAD_CPUTIME_ID);
    hr_clock_ns_(CLOCK_THREAD_CPUTIME_ID);
    cost = (hr_clock_ns_(CLOCK_MONOTONIC) - begin) / 2;
    if (cost < best) best = cost;
  }
  period_ns = best * 2000;
  if (period_ns < 100000) period_ns = 100000;
  if (period_ns > 1000000) period_ns = 1000000;
  return (uint64_t)((double)period_ns * 1e-9 * (double)h->ticks_per_second);
}

/* The pid namespace of this process; 0 where /proc does not tell. */
static inline uint32_t hr_pid_namespace_(void) {
  char text[32];
  unsigned inode = 0;
  ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
  if (n <= 0) return 0;
  text[n] = 0;
  return sscanf(text, "pid:[%u]", &inode) == 1 ? (uint32_t)inode : 0;
}

/* As <fcntl.h> has them with _GNU_SOURCE alone, which a program may not have defined. */
enum { HR_F_SETSIG_ = 10, HR_F_SETLEASE_ = 1024 };

/* Whether no process, in whatever container, has the file open or mapped for writing: only then
 * does the kernel grant a lease for reading. 0 also where it does not tell. */
static inline int hr_nobody_writes_(int fd) {
  /* Somebody who opens the file in this moment would have the kernel send us a signal that kills.
   */
  if (fcntl(fd, HR_F_SETSIG_, SIGURG) != 0 || fcntl(fd, HR_F_SETLEASE_, F_RDLCK) != 0) return 0;
  fcntl(fd, HR_F_SETLEASE_, F_UNLCK);
  return 1;
}

/* Whether a process of this number left the file behind, so that it may go: one of the same pid
 * namespace is dead, since the number is this process's now; of any other nobody may write it. */
static inline int hr_is_left_behind_(const char* path, uint32_t pid, uint32_t pid_namespace) {
  struct hr_header h;
  struct stat info;
  int left, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return 0;
  memset(&h, 0, sizeof(h));
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    left = 0;
  } else if (pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && h.magic == HR_ACCOUNT_MAGIC &&
             h.pid_namespace != 0 && pid_namespace != 0) {
    left = h.pid == pid && h.pid_namespace == pid_namespace;
  } else {
    left = hr_nobody_writes_(fd);
  }
  close(fd);
  return left;
}

/* Makes a file of that name; -1 and errno. Never takes the place of what others still write. */
static inline int hr_create_(const char* path, uint32_t pid, uint32_t pid_namespace) {
  int fd, tries;
  for (tries = 0; tries < 3; tries++) {
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
    if (!hr_is_left_behind_(path, pid, pid_namespace) || unlink(path) != 0) break;
  }
  errno = EEXIST;
  return -1;
}

/* Creates the segment of this process. Returns 0, also when it exists or HEADRACE_ACCOUNTS=off, or
 * -errno; then every other call does nothing. -EEXIST: files of others have both names that it may
 * have. `program` is shown as the pipeline's name. */
static inline int hr_account_open(const char* program) {
  const char* off = getenv("HEADRACE_ACCOUNTS");
  const char* dir = getenv("HEADRACE_ACCOUNT_DIR");
  const char* level = getenv("HEADRACE_ACCOUNT_LEVEL");
  struct hr_process* p = &hr_process_v1;
  struct hr_segment* g = NULL;
  const uint32_t pid = (uint32_t)getpid();
  uint32_t pid_namespace;
  char path[256];
  int fd = -1, error = 0, n, second;
  if (off && strcmp(off, "off") == 0) return 0;
  hr_lock_tables_();
  if (hr_segment_()) goto done;
  if (!dir || !*dir) dir = "/dev/shm";
  pid_namespace = hr_pid_namespace_();
  for (second = 0; second < 2; second++) {
    n = second ? snprintf(path, sizeof(path), "%s/headrace.%u.%u", dir, pid, pid_namespace)
               : snprintf(path, sizeof(path), "%s/headrace.%u", dir, pid);
    if (n < 0 || (size_t)n >= sizeof(path)) {
      error = ENAMETOOLONG;
      goto done;
    }
    fd = hr_create_(path, pid, pid_namespace);
    error = fd < 0 ? errno : 0;
    if (error != EEXIST) break;
  }
  if (error) goto done;
  if (ftruncate(fd, (off_t)sizeof(struct hr_segment)) != 0) error = errno;
  if (!error) error = posix_fallocate(fd, 0, (off_t)offsetof(struct hr_segment, slots));
  if (!error) {
    void* m = mmap(NULL, sizeof(struct hr_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) {
      error = errno;
    } else {
      g = (struct hr_segment*)m;
    }
  }
  if (!error && !p->installed) {
    error = pthread_key_create(&p->key, hr_thread_exit_);
    if (!error) error = pthread_atfork(NULL, NULL, hr_atfork_child_);
    if (!error) {
      p->installed = 1;
      atexit(hr_account_close);
    }
  }
  if (error) {
    if (g) munmap((void*)g, sizeof(struct hr_segment));
    close(fd);
    unlink(path);
    goto done;
  }
  g->header.magic = HR_ACCOUNT_MAGIC;
  g->header.abi_version = HR_ACCOUNT_ABI;
  g->header.abi_minor = HR_ACCOUNT_ABI_MINOR;
  g->header.segment_size = sizeof(struct hr_segment);
  g->header.pid = pid;
  g->header.pid_namespace = pid_namespace;
  g->header.level = level && strcmp(level, "1") == 0 ? 1u : 2u;
  hr_copy_name_(g->header.program, sizeof(g->header.program), program);
  hr_calibrate_(&g->header);
  p->fd = fd;
  p->pid = g->header.pid;
  p->clock_kind = g->header.clock_kind;
  p->level = g->header.level;
  p->cpu_period_ticks = hr_cpu_period_ticks_(&g->header);
  memcpy(p->path, path, sizeof(path));
  if (++p->generation == 0) p->generation = 1;
  __atomic_store_n(&g->header.state, (uint32_t)HR_STATE_OPEN, __ATOMIC_RELEASE);
  __atomic_store_n(&p->segment, g, __ATOMIC_RELEASE);
done:
  hr_unlock_tables_();
  return -error;
}

/* Registers a stage: operators fused to run on `parallelism` threads. Registering a name again
 * returns the same id. max_parallelism: 0 = no limit, 1 = sequential by nature. */
static inline uint32_t hr_stage(const char* name, uint32_t parallelism, uint32_t max_parallelism) {
  struct hr_segment* g = hr_segment_();
  uint32_t i, n;
  if (!g) return HR_NONE;
  hr_lock_tables_();
  n = g->header.num_stages;
  for (i = 0; i < n; i++) {
    if (hr_same_name_(g->stages[i].name, sizeof(g->stages[i].name), name)) break;
  }
  if (i == n && n < HR_MAX_STAGES) {
    struct hr_stage_entry* e = &g->stages[n];
    hr_copy_name_(e->name, sizeof(e->name), name);
    HR_STORE_(&e->parallelism, parallelism);
    HR_STORE_(&e->max_parallelism, max_parallelism);
    HR_STORE_(&e->begin_ticks, hr_ticks_());
    HR_STORE_(&e->since_ticks, e->begin_ticks);
    HR_STORE_(&g->header.num_stages, n + 1);
  } else if (i == n) {
    HR_SHARED_ADD_(&g->header.stages_lost, UINT64_C(1));
    i = HR_NONE;
  }
  hr_unlock_tables_();
  return i;
}

/* Says that a stage now runs on `parallelism` threads. */
static inline void hr_stage_parallelism(uint32_t stage, uint32_t parallelism) {
  struct hr_segment* g = hr_segment_();
  struct hr_stage_entry* e;
  uint64_t now;
  if (!g || stage >= HR_MAX_STAGES) return;
  e = &g->stages[stage];
  hr_lock_tables_();
  now = hr_ticks_();
  if (now > e->since_ticks) {
    HR_ADD_(&e->parallelism_ticks, (now - e->since_ticks) * e->parallelism);
    HR_STORE_(&e->since_ticks, now);
  }
  HR_STORE_(&e->parallelism, parallelism);
  hr_unlock_tables_();
}

/* Registers an operator of a stage, in pipeline order. The same name in the same stage returns the
 * same id. `kind` says what it does ("fetch", "decode", "transform"), for grouping. */
static inline uint32_t hr_operator(const char* name, const char* kind, uint32_t stage) {
  struct hr_segment* g = hr_segment_();
  uint32_t i, n;
  if (!g) return HR_NONE;
  hr_lock_tables_();
  n = g->header.num_operators;
  for (i = 0; i < n; i++) {
    if (g->operators[i].stage == stage &&
        hr_same_name_(g->operators[i].name, sizeof(g->operators[i].name), name)) {
      break;
    }
  }
  if (i == n && n < HR_MAX_OPERATORS) {
    struct hr_operator_entry* e = &g->operators[n];
    hr_copy_name_(e->name, sizeof(e->name), name);
    hr_copy_name_(e->kind, sizeof(e->kind), kind);
    HR_STORE_(&e->stage, stage);
    HR_STORE_(&g->header.num_operators, n + 1);
  } else if (i == n) {
    HR_SHARED_ADD_(&g->header.operators_lost, UINT64_C(1));
    i = HR_NONE;
  }
  hr_unlock_tables_();
  return i;
}

/* Registers a bounded queue between two stages (HR_NONE: outside the pipeline). */
static inline uint32_t hr_queue(const char* name, uint32_t producer_stage, uint32_t consumer_stage,
                                uint32_t capacity) {
  struct hr_segment* g = hr_segment_();
  uint32_t i, n;
  if (!g) return HR_NONE;
  hr_lock_tables_();
  n = g->header.num_queues;
  for (i = 0; i < n; i++) {
    if (hr_same_name_(g->queues[i].name, sizeof(g->queues[i].name), name)) break;
  }
  if (i == n && n < HR_MAX_QUEUES) {
    struct hr_queue_entry* e = &g->queues[n];
    hr_copy_name_(e->name, sizeof(e->name), name);
    HR_STORE_(&e->producer_stage, producer_stage);
    HR_STORE_(&e->consumer_stage, consumer_stage);
    HR_STORE_(&e->capacity, capacity);
    HR_STORE_(&e->since_ticks, hr_ticks_());
    HR_STORE_(&g->header.num_queues, n + 1);
  } else if (i == n) {
    HR_SHARED_ADD_(&g->header.queues_lost, UINT64_C(1));
    i = HR_NONE;
  }
  hr_unlock_tables_();
  return i;
}

/* Registers what threads wait for and hold: a lock (1 server), a device (its parallel servers), or
 * a memory budget (its servers are MiB; hr_resource_served at each release, with the bytes that
 * were taken of it, how long they were waited for and how long they were held). */
static inline uint32_t hr_resource(const char* name, int kind, uint32_t servers) {
  struct hr_segment* g = hr_segment_();
  uint32_t i, n;
  if (!g) return HR_NONE;
  hr_lock_tables_();
  n = g->header.num_resources;
  for (i = 0; i < n; i++) {
    if (hr_same_name_(g->resources[i].name, sizeof(g->resources[i].name), name)) break;
  }
  if (i == n && n < HR_MAX_RESOURCES) {
    struct hr_resource_entry* e = &g->resources[n];
    hr_copy_name_(e->name, sizeof(e->name), name);
    HR_STORE_(&e->kind, (uint32_t)kind);
    HR_STORE_(&e->servers, servers);
    HR_STORE_(&g->header.num_resources, n + 1);
  } else if (i == n) {
    HR_SHARED_ADD_(&g->header.resources_lost, UINT64_C(1));
    i = HR_NONE;
  }
  hr_unlock_tables_();
  return i;
}

/* The calling thread leaves its stage: its figures move into the stage's. Happens at thread exit by
 * itself. */
static inline void hr_thread_end(void) {
  if (!hr_segment_()) return;
  hr_thread_exit_(NULL);
  hr_thread_v1.generation = 0; /* the next call takes a slot again */
}

/* The calling thread joins a stage (and leaves the one it was in). A thread that never calls this
 * joins the stage of the first operator it enters. */
static inline void hr_thread_begin(uint32_t stage) {
  if (!hr_segment_()) return;
  hr_thread_end();
  hr_join_(stage);
}

/* The calling thread begins / ends work of an operator. Nested: the parent's clock stops. */
static inline void hr_enter(uint32_t op) {
  struct hr_slot* s = hr_slot_(op);
  uint32_t word = op < HR_MAX_OPERATORS ? op + 1 : 0;
  if (!s) return;
  HR_ADD_(&s->blocks[word].enters_count, UINT64_C(1));
  hr_push_(s, word);
}
static inline void hr_leave(void) {
  struct hr_slot* s = hr_slot_(HR_NONE);
  if (s) hr_pop_(s);
}

/* Adds work done. completions: elements this operator finished; bytes in and out of it. */
static inline void hr_done(uint32_t op, uint64_t completions, uint64_t rows, uint64_t bytes_in,
                           uint64_t bytes_out) {
  struct hr_slot* s = hr_slot_(op);
  struct hr_block* b;
  if (!s || op >= HR_MAX_OPERATORS) return;
  b = &s->blocks[op + 1];
  HR_ADD_(&b->completions_count, completions);
  HR_ADD_(&b->rows_count, rows);
  HR_ADD_(&b->in_bytes, bytes_in);
  HR_ADD_(&b->out_bytes, bytes_out);
}

/* The calling thread waits for an upstream element (HR_WAIT_IN: charge the first operator of the
 * stage) or for room downstream (HR_WAIT_OUT: charge the last). Never a demand of the operator. */
static inline void hr_wait_begin(uint32_t op, int direction) {
  struct hr_slot* s = hr_slot_(op);
  uint32_t word = op < HR_MAX_OPERATORS ? op + 1 : 0;
  if (!s) return;
  hr_push_(s, word | (uint32_t)(direction == HR_WAIT_OUT ? HR_WAITING_OUT : HR_WAITING_IN) << 16);
}
static inline void hr_wait_end(void) { hr_leave(); }

/* The calling thread asks for a resource, gets it, gives it back having moved `bytes` through it.
 * The wait counts inside the current operator as lock wait, a part of its blocked time. */
static inline void hr_resource_wait_begin(uint32_t resource) {
  struct hr_slot* s = hr_slot_(HR_NONE);
  if (!s) return;
  if (resource >= HR_MAX_RESOURCES) {
    hr_push_(s, s->current);
    return;
  }
  hr_push_(s, (s->current & 0xffffu) | (uint32_t)HR_WAITING_RESOURCE << 16 | (resource + 1) << 20);
}
static inline void hr_resource_held(uint32_t resource) {
  struct hr_segment* g = hr_segment_();
  struct hr_slot* s = hr_slot_(HR_NONE);
  uint64_t before, now;
  if (!s || !g) return;
  before = s->since_ticks;
  hr_pop_(s);
  now = s->since_ticks;
  if (resource >= HR_MAX_RESOURCES) return;
  HR_SHARED_ADD_(&g->resources[resource].acquisitions_count, UINT64_C(1));
  HR_SHARED_ADD_(&g->resources[resource].wait_ticks, now - before);
  if (s->num_held < HR_MAX_HELD) {
    s->held[s->num_held].resource = resource;
    HR_STORE_(&s->held[s->num_held].since_ticks, now);
    HR_STORE_(&s->num_held, s->num_held + 1);
  }
}
static inline void hr_resource_released(uint32_t resource, uint64_t bytes) {
  struct hr_segment* g = hr_segment_();
  struct hr_slot* s = hr_slot_(HR_NONE);
  uint32_t i;
  if (!s || !g || resource >= HR_MAX_RESOURCES) return;
  HR_SHARED_ADD_(&g->resources[resource].moved_bytes, bytes);
  for (i = s->num_held; i-- > 0;) {
    if (s->held[i].resource != resource) continue;
    {
      uint64_t now = hr_ticks_(), since = s->held[i].since_ticks;
      if (now > since) HR_SHARED_ADD_(&g->resources[resource].hold_ticks, now - since);
    }
    for (; i + 1 < s->num_held; i++) s->held[i] = s->held[i + 1];
    HR_STORE_(&s->num_held, s->num_held - 1);
    return;
  }
}

/* A service of a resource whose times are known otherwise than from when the thread held it, such
 * as a modelled device that serves while the thread does other things. */
static inline void hr_resource_served(uint32_t resource, uint64_t wait_ns, uint64_t hold_ns,
                                      uint64_t bytes) {
  struct hr_segment* g = hr_segment_();
  double ticks;
  if (!g || resource >= HR_MAX_RESOURCES) return;
  ticks = (double)g->header.ticks_per_second * 1e-9;
  HR_SHARED_ADD_(&g->resources[resource].acquisitions_count, UINT64_C(1));
  HR_SHARED_ADD_(&g->resources[resource].wait_ticks, (uint64_t)((double)wait_ns * ticks));
  HR_SHARED_ADD_(&g->resources[resource].hold_ticks, (uint64_t)((double)hold_ns * ticks));
  HR_SHARED_ADD_(&g->resources[resource].moved_bytes, bytes);
}

/* Brings a queue's integrals up to now. */
static inline void hr_queue_advance_(struct hr_queue_entry* q, uint64_t now) {
  uint64_t dt = now > q->since_ticks ? now - q->since_ticks : 0;
  if (!dt) return;
  HR_ADD_(&q->observed_ticks, dt);
  HR_ADD_(&q->occupancy_ticks, dt * q->occupancy);
  HR_ADD_(&q->capacity_ticks, dt * q->capacity);
  if (q->occupancy == 0) HR_ADD_(&q->empty_ticks, dt);
  if (q->occupancy >= q->capacity && q->capacity) HR_ADD_(&q->full_ticks, dt);
  HR_STORE_(&q->since_ticks, now);
}

/* Says how many elements a queue holds now. Call under the queue's mutex after each put and get. */
static inline void hr_queue_level(uint32_t queue, uint32_t occupancy) {
  struct hr_segment* g = hr_segment_();
  struct hr_queue_entry* q;
  uint32_t before;
  if (!g || queue >= HR_MAX_QUEUES) return;
  q = &g->queues[queue];
  HR_STORE_(&q->sequence, q->sequence + 1);
  hr_queue_advance_(q, hr_ticks_());
  before = q->occupancy;
  if (occupancy > before) HR_ADD_(&q->puts_count, (uint64_t)(occupancy - before));
  if (occupancy < before) HR_ADD_(&q->gets_count, (uint64_t)(before - occupancy));
  HR_STORE_(&q->occupancy, occupancy);
  HR_STORE_(&q->sequence, q->sequence + 1);
}

/* Changes a queue's capacity. Call under the queue's mutex. */
static inline void hr_queue_capacity(uint32_t queue, uint32_t capacity) {
  struct hr_segment* g = hr_segment_();
  struct hr_queue_entry* q;
  if (!g || queue >= HR_MAX_QUEUES) return;
  q = &g->queues[queue];
  HR_STORE_(&q->sequence, q->sequence + 1);
  hr_queue_advance_(q, hr_ticks_());
  HR_STORE_(&q->capacity, capacity);
  HR_STORE_(&q->sequence, q->sequence + 1);
}

/* Records one step of the consumer: it waited for a batch of `rows`, then computed. */
static inline void hr_step(uint64_t wait_ns, uint64_t compute_ns, uint64_t rows) {
  struct hr_segment* g = hr_segment_();
  struct hr_step_record* r;
  uint64_t n;
  if (!g) return;
  n = __atomic_fetch_add(&g->header.steps_count, UINT64_C(1), __ATOMIC_RELAXED);
  HR_SHARED_ADD_(&g->header.step_rows_count, rows);
  HR_SHARED_ADD_(&g->header.step_wait_ns, wait_ns);
  HR_SHARED_ADD_(&g->header.step_compute_ns, compute_ns);
  r = &g->steps[n % HR_STEP_RECORDS];
  HR_STORE_(&r->sequence, UINT64_C(0));
  HR_STORE_(&r->end_ticks, hr_ticks_());
  HR_STORE_(&r->wait_ns, wait_ns);
  HR_STORE_(&r->compute_ns, compute_ns);
  HR_STORE_(&r->rows_count, rows);
  HR_STORE_(&r->sequence, n + 1);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_PROBES_ACCOUNT_ACCOUNT_H_ */
