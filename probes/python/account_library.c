/* Visible: code of the same process that includes the header shares the segment, if it is loaded
 * after this library. (The header comes first: it asks libc for POSIX declarations.) */
#pragma GCC visibility push(default)
#include "probes/account/account.h"
#pragma GCC visibility pop
#include "probes/python/account_library.h"

#define HRX_PUBLIC __attribute__((visibility("default")))

/* What a thread says of itself. Void when the segment is another one: after a fork, or reopened. */
struct hrx_thread {
  uint32_t generation;
  uint32_t stage; /* of its handles */
  /* As a consumer: */
  uint32_t is_consumer;
  uint32_t consumer_op;
  uint32_t serial; /* of the step under way, unique in the process; 0: none yet */
  uint32_t nested; /* requests inside requests */
  uint32_t outer_stage;
  uint32_t batches_count;
  uint64_t since_ns, begin_ns, wait_ns, rows;
  uint64_t before_ns; /* waited before the step began, for its first batch */
  uint64_t inside_ns; /* waited inside of the outermost request, which holds it if it succeeds */
  uint64_t latest_ns; /* when its outermost request last began or ended */
  uint64_t ended_count, usual_ns; /* steps so far, and what the latest took, smoothed */
};
static __thread struct hrx_thread hrx_thread;
static uint32_t hrx_serials;
static int hrx_steps_are_told; /* by hrx_consumer_step */

/* By handle and stage: generation in the upper half, operator + 1 in the lower, kNoOperator for one
 * that could not be registered; 0 is not bound. */
enum { kNoOperator = 0xffff };
static uint32_t hrx_bound[HRX_MAX_HANDLES][HR_MAX_STAGES + 1];

static uint32_t busy_word(uint32_t op) { return op < HR_MAX_OPERATORS ? op + 1 : 0; }
static uint32_t wait_word(uint32_t op, int direction) {
  return busy_word(op) | (uint32_t)direction << 16;
}

/* Leaves the innermost frame that says `word`, with everything inside it. 0: there is none. */
static int leave_word(struct hr_slot* s, uint32_t word) {
  uint32_t level = s->depth;
  if (level == 0) return 0;
  if (level > HR_MAX_DEPTH) { /* frames too deep to be kept are left one by one */
    s->depth--;
    return 1;
  }
  if (s->current == word) {
    hr_pop_(s);
    return 1;
  }
  while (--level > 0) {
    if (s->stack[level] != word) continue;
    s->depth = level;
    hr_pop_(s);
    return 1;
  }
  return 0;
}

/* Leaves the frame that says `from`, if the thread is in it, and enters one that says `to`: at one
 * border. */
enum { kNoWord = 0xffffffffu };
static void enter_after(struct hr_slot* s, uint32_t from, uint32_t to) {
  if ((to >> 16 & 3u) == HR_BUSY) HR_ADD_(&s->blocks[to & 0xffffu].enters_count, UINT64_C(1));
  if (s->current == from && s->depth > 0 && s->depth <= HR_MAX_DEPTH) {
    hr_border_(s, to);
  } else {
    hr_push_(s, to);
  }
}

/* Null when accounts are off. */
static struct hrx_thread* here(void) {
  struct hrx_thread* t = &hrx_thread;
  if (__builtin_expect(!hr_segment_(), 0)) return NULL;
  if (__builtin_expect(t->generation != hr_process_v1.generation, 0)) {
    memset(t, 0, sizeof(*t));
    t->generation = hr_process_v1.generation;
    t->stage = HR_NONE;
  }
  return t;
}

/* The operator that a handle stands for here. 0: none is bound. */
static int operator_of(uint32_t handle, uint32_t* op) {
  struct hrx_thread* t = here();
  uint32_t bound;
  if (__builtin_expect(!t || t->stage > HR_MAX_STAGES || handle >= HRX_MAX_HANDLES, 0)) return 0;
  bound = HR_LOAD_(&hrx_bound[handle][t->stage]);
  if (__builtin_expect((uint16_t)(bound >> 16) != (uint16_t)t->generation || !bound, 0)) return 0;
  *op = (bound & 0xffffu) == kNoOperator ? HR_NONE : (bound & 0xffffu) - 1;
  return 1;
}

static struct hrx_thread* consumer(void) {
  struct hrx_thread* t = here();
  return t && t->is_consumer ? t : NULL;
}

static uint32_t next_serial(void) {
  uint32_t serial = __atomic_add_fetch(&hrx_serials, 1u, __ATOMIC_RELAXED);
  return serial ? serial : next_serial();
}

static void end_step(struct hrx_thread* c, uint64_t now, uint64_t rows) {
  uint64_t all = now > c->since_ns ? now - c->since_ns : 0;
  hr_step(c->wait_ns, all > c->wait_ns ? all - c->wait_ns : 0, rows);
  hr_done(c->consumer_op, 1, rows, 0, 0);
  c->ended_count++;
  c->usual_ns = c->ended_count == 1 ? all : c->usual_ns - c->usual_ns / 8 + all / 8;
  c->since_ns = now;
  c->wait_ns = c->rows = 0;
  c->batches_count = 0;
  c->serial = next_serial();
}

/* Whether what follows the last batch is no step any more: the program kept its source for far
 * longer than steps take, and did something else. */
static int is_over(const struct hrx_thread* c, uint64_t now) {
  const uint64_t steps_to_know = 16, times_longer = 8, least_ns = 100000000;
  uint64_t all = now > c->since_ns ? now - c->since_ns : 0;
  return c->ended_count >= steps_to_know && all > least_ns && all > times_longer * c->usual_ns;
}

/* The thread computes no more until it asks again. */
static void rest(struct hrx_thread* c) {
  struct hr_slot* s = hr_slot_(c->consumer_op);
  c->since_ns = c->wait_ns = c->rows = 0;
  c->batches_count = 0;
  if (s && s->current == busy_word(c->consumer_op)) leave_word(s, busy_word(c->consumer_op));
}

HRX_PUBLIC uint32_t hrx_account_abi(void) { return HR_ACCOUNT_ABI; }
HRX_PUBLIC int hrx_account_is_open(void) { return hr_segment_() != NULL; }

HRX_PUBLIC int hrx_account_open(const char* program) { return hr_account_open(program); }
HRX_PUBLIC void hrx_account_close(void) { hr_account_close(); }
HRX_PUBLIC uint32_t hrx_stage(const char* name, uint32_t parallelism, uint32_t max_parallelism) {
  return hr_stage(name, parallelism, max_parallelism);
}
HRX_PUBLIC void hrx_stage_parallelism(uint32_t stage, uint32_t parallelism) {
  hr_stage_parallelism(stage, parallelism);
}
HRX_PUBLIC uint32_t hrx_operator(const char* name, const char* kind, uint32_t stage) {
  return hr_operator(name, kind, stage);
}
HRX_PUBLIC uint32_t hrx_queue(const char* name, uint32_t producer_stage, uint32_t consumer_stage,
                              uint32_t capacity) {
  return hr_queue(name, producer_stage, consumer_stage, capacity);
}
HRX_PUBLIC uint32_t hrx_resource(const char* name, int kind, uint32_t servers) {
  return hr_resource(name, kind, servers);
}
HRX_PUBLIC void hrx_thread_begin(uint32_t stage) { hr_thread_begin(stage); }
HRX_PUBLIC void hrx_thread_end(void) { hr_thread_end(); }
HRX_PUBLIC void hrx_enter(uint32_t op) { hr_enter(op); }
HRX_PUBLIC void hrx_leave(void) { hr_leave(); }
HRX_PUBLIC void hrx_done(uint32_t op, uint64_t completions, uint64_t rows, uint64_t bytes_in,
                         uint64_t bytes_out) {
  hr_done(op, completions, rows, bytes_in, bytes_out);
}
HRX_PUBLIC void hrx_wait_begin(uint32_t op, int direction) { hr_wait_begin(op, direction); }
HRX_PUBLIC void hrx_wait_end(void) { hr_wait_end(); }
HRX_PUBLIC void hrx_resource_wait_begin(uint32_t resource) { hr_resource_wait_begin(resource); }
HRX_PUBLIC void hrx_resource_held(uint32_t resource) { hr_resource_held(resource); }
HRX_PUBLIC void hrx_resource_released(uint32_t resource, uint64_t bytes) {
  hr_resource_released(resource, bytes);
}
HRX_PUBLIC void hrx_queue_level(uint32_t queue, uint32_t occupancy) {
  hr_queue_level(queue, occupancy);
}
HRX_PUBLIC void hrx_queue_capacity(uint32_t queue, uint32_t capacity) {
  hr_queue_capacity(queue, capacity);
}
HRX_PUBLIC void hrx_step(uint64_t wait_ns, uint64_t compute_ns, uint64_t rows) {
  hr_step(wait_ns, compute_ns, rows);
}

HRX_PUBLIC uint32_t hrx_stage_here(void) {
  struct hrx_thread* t = here();
  return t ? t->stage : HR_NONE;
}
HRX_PUBLIC void hrx_thread_stage(uint32_t stage) {
  struct hrx_thread* t = here();
  if (t) t->stage = stage <= HR_MAX_STAGES ? stage : HR_NONE;
}
HRX_PUBLIC void hrx_bind(uint32_t handle, uint32_t stage, uint32_t op) {
  struct hrx_thread* t = here();
  if (!t || handle >= HRX_MAX_HANDLES) return;
  HR_STORE_(&hrx_bound[handle][stage < HR_MAX_STAGES ? stage : (uint32_t)HR_MAX_STAGES],
            t->generation << 16 | (op < HR_MAX_OPERATORS ? op + 1 : (uint32_t)kNoOperator));
}
HRX_PUBLIC int hrx_begin(uint32_t handle) {
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  hr_enter(op);
  return 0;
}
HRX_PUBLIC int hrx_end(uint32_t handle) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s) leave_word(s, busy_word(op));
  return 0;
}
HRX_PUBLIC int hrx_end_one(uint32_t handle, uint32_t rows) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s) leave_word(s, busy_word(op));
  hr_done(op, 1, rows, 0, 0);
  return 0;
}
HRX_PUBLIC int hrx_end_some(uint32_t handle, uint32_t completions) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s) leave_word(s, busy_word(op));
  hr_done(op, completions, completions, 0, 0);
  return 0;
}
/* As hr_border_ from an operator to itself. The CPU clock is read where the operator is entered and
 * where it is left, which leaves no doubt whose the time in between is; and now and then. */
static void go_on(struct hr_slot* s) {
  const uint64_t now = hr_ticks_(), since = s->since_ticks;
  const uint32_t sequence = s->sequence, bit = 1u << HR_BUSY;
  struct hr_block* b = &s->blocks[s->current & 0xffffu];
  HR_STORE_(&s->sequence, sequence + 1);
  if (now > since) {
    HR_ADD_(&b->ticks[HR_BUSY], now - since);
    HR_STORE_(&s->since_ticks, now);
    b->long_modes = hr_is_long_(now - since) ? b->long_modes | bit : b->long_modes & ~bit;
  }
  if (now - s->cpu_ticks >= hr_process_v1.cpu_period_ticks && now > s->cpu_ticks) {
    const struct hr_segment* g = hr_segment_();
    struct hr_thread* t = &hr_thread_v1;
    const uint16_t block = (uint16_t)(s->current & 0xffffu);
    if (block < t->first_block) t->first_block = block;
    if (block > t->last_block) t->last_block = block;
    if (g && hr_process_v1.level >= 2) hr_share_cpu_(g, s, now);
  }
  HR_STORE_(&s->sequence, sequence + 2);
}
HRX_PUBLIC int hrx_next_one(uint32_t handle) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (!s) return 0;
  if (s->current == busy_word(op) && op < HR_MAX_OPERATORS && s->depth <= HR_MAX_DEPTH) {
    HR_ADD_(&s->blocks[op + 1].enters_count, UINT64_C(1));
    go_on(s);
  } else {
    leave_word(s, busy_word(op));
    hr_enter(op);
  }
  hr_done(op, 1, 1, 0, 0);
  return 0;
}
HRX_PUBLIC int hrx_count(uint32_t handle, uint64_t completions, uint64_t rows, uint64_t bytes_in,
                         uint64_t bytes_out) {
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  hr_done(op, completions, rows, bytes_in, bytes_out);
  return 0;
}
HRX_PUBLIC void hrx_count_here(uint64_t rows, uint64_t bytes_in, uint64_t bytes_out) {
  struct hr_slot* s = hr_slot_(HR_NONE);
  if (s && (s->current & 0xffffu)) {
    hr_done((s->current & 0xffffu) - 1, 0, rows, bytes_in, bytes_out);
  }
}
HRX_PUBLIC int hrx_idle(uint32_t handle) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s && s->current != wait_word(op, HR_WAIT_OUT)) hr_wait_begin(op, HR_WAIT_OUT);
  return 0;
}
HRX_PUBLIC int hrx_begin_after(uint32_t waiting, uint32_t handle) {
  struct hr_slot* s;
  uint32_t op, before;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (!s) return 0;
  enter_after(s, operator_of(waiting, &before) ? wait_word(before, HR_WAIT_OUT) : (uint32_t)kNoWord,
              busy_word(op));
  return 0;
}

HRX_PUBLIC int hrx_end_idle(uint32_t handle, uint32_t rows) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s && s->current != busy_word(op)) leave_word(s, busy_word(op));
  if (s && s->current != wait_word(op, HR_WAIT_OUT)) {
    enter_after(s, busy_word(op), wait_word(op, HR_WAIT_OUT));
  }
  hr_done(op, 1, rows, 0, 0);
  return 0;
}

HRX_PUBLIC int hrx_wait_in(uint32_t handle) {
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  hr_wait_begin(op, HR_WAIT_IN);
  return 0;
}
HRX_PUBLIC int hrx_wait_in_end(uint32_t handle) {
  struct hr_slot* s;
  uint32_t op;
  if (!operator_of(handle, &op)) return 1;
  s = hr_slot_(op);
  if (s) leave_word(s, wait_word(op, HR_WAIT_IN));
  return 0;
}

HRX_PUBLIC int hrx_pass_on(uint32_t from, uint32_t to, uint32_t bytes) {
  struct hr_slot* s;
  uint32_t op, next;
  if (!operator_of(from, &op) || !operator_of(to, &next)) return 1;
  s = hr_slot_(op);
  if (!s) return 0;
  hr_done(op, 0, 0, bytes, 0);
  hr_done(next, 1, 0, 0, 0);
  if (s->current == busy_word(op)) {
    enter_after(s, busy_word(op), busy_word(next));
  } else {
    leave_word(s, busy_word(op));
    hr_enter(next);
  }
  return 0;
}

HRX_PUBLIC void hrx_consumer_begin(uint32_t consumer_op) {
  struct hrx_thread* t = here();
  if (!t) return;
  t->is_consumer = 1;
  t->consumer_op = consumer_op;
}

HRX_PUBLIC int hrx_is_consumer(void) { return consumer() != NULL; }

/* What the thread does inside a request. */
static uint32_t request_word(const struct hrx_thread* c, uint32_t source_op) {
  return source_op < HR_MAX_OPERATORS ? busy_word(source_op)
                                      : wait_word(c->consumer_op, HR_WAIT_IN);
}

/* The request's frame is left and the consumer computes, at one border if it can be. */
static void compute(const struct hrx_thread* c, struct hr_slot* s, uint32_t source_op) {
  const uint32_t request = request_word(c, source_op), computes = busy_word(c->consumer_op);
  if (s->current == request && s->depth > 0 && s->depth <= HR_MAX_DEPTH &&
      s->stack[s->depth - 1] != computes) {
    enter_after(s, request, computes);
    return;
  }
  leave_word(s, request);
  if (s->current != computes) hr_enter(c->consumer_op);
}

HRX_PUBLIC int hrx_next_begin(uint32_t source_op, uint32_t source_stage, uint32_t served) {
  struct hrx_thread* c = consumer();
  struct hr_slot* s;
  if (!c) return 1;
  s = hr_slot_(c->consumer_op);
  if (!s) return 0; /* more threads than the segment has room for */
  if (c->nested++ == 0) {
    uint64_t now = hr_clock_ns_(CLOCK_MONOTONIC);
    if (!HR_LOAD_(&hrx_steps_are_told) && c->batches_count && served && served == c->serial) {
      end_step(c, now, c->rows);
    }
    if (c->since_ns == 0) {
      c->since_ns = now > c->before_ns ? now - c->before_ns : 0;
      c->wait_ns += c->before_ns;
    }
    c->before_ns = c->inside_ns = 0;
    c->begin_ns = c->latest_ns = now;
    c->outer_stage = c->stage;
    if (source_stage < HR_MAX_STAGES) c->stage = source_stage;
    enter_after(s, busy_word(c->consumer_op), request_word(c, source_op));
  } else {
    enter_after(s, kNoWord, request_word(c, source_op));
  }
  return 0;
}

/* True when the request that ends was the outermost: its frame is left by the caller. */
static int next_left(struct hrx_thread* c, struct hr_slot* s, uint32_t source_op) {
  if (c->nested == 0) return 0; /* begun in another segment */
  if (--c->nested > 0) {
    leave_word(s, request_word(c, source_op));
    return 0;
  }
  c->stage = c->outer_stage;
  return 1;
}

HRX_PUBLIC uint32_t hrx_next_end(uint32_t source_op, uint32_t rows) {
  struct hrx_thread* c = consumer();
  struct hr_slot* s = c ? hr_slot_(c->consumer_op) : NULL;
  uint64_t now;
  if (!s) return 0;
  hr_done(source_op, 1, rows, 0, 0);
  if (!next_left(c, s, source_op)) return c->serial;
  now = hr_clock_ns_(CLOCK_MONOTONIC);
  c->latest_ns = now;
  if (now > c->begin_ns) c->wait_ns += now - c->begin_ns;
  c->rows += rows;
  c->batches_count++;
  if (c->serial == 0) c->serial = next_serial();
  compute(c, s, source_op);
  return c->serial;
}

HRX_PUBLIC void hrx_next_failed(uint32_t source_op) {
  struct hrx_thread* c = consumer();
  struct hr_slot* s = c ? hr_slot_(c->consumer_op) : NULL;
  if (!s || !next_left(c, s, source_op)) return;
  if (c->batches_count == 0) {
    leave_word(s, request_word(c, source_op));
    rest(c); /* waiting for the end is no wait for a batch */
    c->before_ns = c->inside_ns;
  } else {
    c->wait_ns += c->inside_ns;
    compute(c, s, source_op);
  }
}

/* `is_latest`: the thread's outermost request began or ended right now. */
static int is_look_due(struct hrx_source* source, const struct hrx_thread* c, int is_latest) {
  uint64_t now;
  if (!source->look_every_ns) return 0;
  now = is_latest && c->latest_ns ? c->latest_ns : hr_clock_ns_(CLOCK_MONOTONIC);
  if (now < source->look_ns) return 0;
  source->look_ns = now + source->look_every_ns;
  return HRX_LOOK;
}

HRX_PUBLIC int hrx_ask(struct hrx_source* source) {
  const struct hrx_thread* c = consumer();
  if (hrx_next_begin(source->op, source->stage, source->served)) return 1;
  return is_look_due(source, c, c->nested == 1);
}

HRX_PUBLIC int hrx_got(struct hrx_source* source, uint32_t rows) {
  const struct hrx_thread* c = consumer();
  source->served = hrx_next_end(source->op, rows);
  if (source->taken >= 0) source->taken++;
  return c ? is_look_due(source, c, c->nested == 0) : 0;
}

HRX_PUBLIC void hrx_got_none(struct hrx_source* source) {
  hrx_next_failed(source->op);
  source->served = 0;
}

HRX_PUBLIC int hrx_source_looked(struct hrx_source* source) {
  const int64_t taken = source->taken;
  source->taken = 0;
  return taken > INT32_MAX ? INT32_MAX : (int)taken;
}

HRX_PUBLIC int hrx_is_asking(void) {
  const struct hrx_thread* c = consumer();
  return c && c->nested > 0;
}

HRX_PUBLIC void hrx_waited_since(uint64_t begin_ns) {
  struct hrx_thread* c = consumer();
  const uint64_t now = hr_clock_ns_(CLOCK_MONOTONIC);
  uint64_t* sum;
  if (!c) return;
  sum = c->nested > 0 ? &c->inside_ns : c->since_ns != 0 ? &c->wait_ns : &c->before_ns;
  if (c->since_ns > begin_ns) begin_ns = c->since_ns; /* what was before is of another step */
  if (now > begin_ns) *sum += now - begin_ns;
}

HRX_PUBLIC void hrx_next_closed(uint32_t served) {
  struct hrx_thread* c = consumer();
  if (!c || c->nested > 0 || c->serial == 0 || served != c->serial) return;
  if (!HR_LOAD_(&hrx_steps_are_told) && c->batches_count) {
    uint64_t now = hr_clock_ns_(CLOCK_MONOTONIC);
    if (!is_over(c, now)) end_step(c, now, c->rows);
  }
  rest(c);
}

HRX_PUBLIC int hrx_consumer_step(int64_t rows) {
  struct hrx_thread* c = consumer();
  uint64_t now;
  if (!c) return 1;
  now = hr_clock_ns_(CLOCK_MONOTONIC);
  HR_STORE_(&hrx_steps_are_told, 1);
  if (c->since_ns == 0) { /* when this step began is not known */
    c->since_ns = now;
    c->before_ns = 0; /* waited in it */
    return 0;
  }
  end_step(c, now, rows >= 0 ? (uint64_t)rows : c->rows);
  return 0;
}

HRX_PUBLIC void hrx_queue_sampled(uint32_t queue, uint32_t occupancy, int taken) {
  struct hr_segment* g = hr_segment_();
  struct hr_queue_entry* q;
  int64_t put;
  uint64_t now;
  if (!g || queue >= HR_MAX_QUEUES) return;
  q = &g->queues[queue];
  now = hr_ticks_();
  HR_STORE_(&q->sequence, q->sequence + 1);
  if (taken < 0) {
    HR_STORE_(&q->since_ticks, now);
    taken = 0;
  } else if (now > q->since_ticks) {
    hr_queue_advance_(q, q->since_ticks + (now - q->since_ticks) / 2);
  }
  put = (int64_t)occupancy + taken - (int64_t)q->occupancy;
  HR_ADD_(&q->puts_count, (uint64_t)(put > 0 ? put : 0));
  HR_ADD_(&q->gets_count, (uint64_t)(put < 0 ? taken - put : taken));
  HR_STORE_(&q->occupancy, occupancy);
  hr_queue_advance_(q, now);
  HR_STORE_(&q->sequence, q->sequence + 1);
}

static uint64_t ticks_of(const struct hr_segment* g, uint64_t ns) {
  return (uint64_t)((double)ns * (double)g->header.ticks_per_second / 1e9);
}

HRX_PUBLIC void hrx_worked(uint32_t op, uint64_t completions, uint64_t busy_ns, uint64_t cpu_low_ns,
                           uint64_t cpu_high_ns, uint64_t wait_in_ns) {
  struct hr_segment* g = hr_segment_();
  struct hr_slot* s = hr_slot_(HR_NONE);
  struct hr_block* b;
  uint32_t sequence;
  uint64_t ticks;
  if (!g || !s || op >= HR_MAX_OPERATORS) return;
  if (cpu_high_ns > busy_ns) cpu_high_ns = busy_ns;
  if (cpu_low_ns > cpu_high_ns) cpu_low_ns = cpu_high_ns;
  b = &s->blocks[op + 1];
  ticks = ticks_of(g, busy_ns);
  sequence = s->sequence;
  HR_STORE_(&s->sequence, sequence + 1);
  HR_ADD_(&b->ticks[HR_BUSY], ticks);
  HR_ADD_(&b->shared_busy_ticks, ticks); /* none of it is the calling thread's CPU time */
  HR_ADD_(&b->cpu_ns, cpu_high_ns);
  HR_ADD_(&b->cpu_low_ns, cpu_low_ns);
  HR_ADD_(&b->cpu_high_ns, cpu_high_ns);
  HR_ADD_(&b->ticks[HR_WAIT_IN], ticks_of(g, wait_in_ns));
  HR_STORE_(&s->sequence, sequence + 2);
  hr_done(op, completions, 0, 0, 0);
}

HRX_PUBLIC void hrx_stage_lived(uint32_t stage, uint64_t lifetime_ns, uint64_t inside_ns,
                                uint64_t cpu_ns) {
  struct hr_segment* g = hr_segment_();
  struct hr_stage_entry* e;
  if (!g || stage >= HR_MAX_STAGES) return;
  if (inside_ns > lifetime_ns) inside_ns = lifetime_ns;
  e = &g->stages[stage];
  HR_SHARED_ADD_(&e->lifetime_ticks, ticks_of(g, lifetime_ns));
  HR_SHARED_ADD_(&e->unattributed_ticks, ticks_of(g, lifetime_ns - inside_ns));
  HR_SHARED_ADD_(&e->on_cpu_ns, cpu_ns);
}
