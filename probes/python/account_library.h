/* libheadrace_account: the operator accounts of headrace/account.h as a shared library, for
 * languages that call C functions but cannot include a C header (Python's ctypes, Go, Rust, Java).
 *
 * Every hr_x of the header is here as hrx_x with the same arguments and meaning. Ids that could not
 * be given are 0xffffffff and every call accepts them. Below are calls that such languages need:
 * operators by handle, which stay valid over a fork and in every stage; leaving an operator by
 * name, so that frames an exception skipped do no harm; and a consumer whose steps are found out
 * from its requests for batches.
 *
 * All functions may be called from any thread; none throws, allocates, or waits for another
 * process. The ABI is that of the library's soname: functions are added, never changed. */
#ifndef HEADRACE_PROBES_PYTHON_ACCOUNT_LIBRARY_H_
#define HEADRACE_PROBES_PYTHON_ACCOUNT_LIBRARY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI of the account segment that the library writes. */
uint32_t hrx_account_abi(void);
/* 1 while the process has a segment, 0 when accounts are off. */
int hrx_account_is_open(void);

int hrx_account_open(const char* program);
void hrx_account_close(void);
uint32_t hrx_stage(const char* name, uint32_t parallelism, uint32_t max_parallelism);
void hrx_stage_parallelism(uint32_t stage, uint32_t parallelism);
uint32_t hrx_operator(const char* name, const char* kind, uint32_t stage);
uint32_t hrx_queue(const char* name, uint32_t producer_stage, uint32_t consumer_stage,
                   uint32_t capacity);
uint32_t hrx_resource(const char* name, int kind, uint32_t servers);
void hrx_thread_begin(uint32_t stage);
void hrx_thread_end(void);
void hrx_enter(uint32_t op);
void hrx_leave(void);
void hrx_done(uint32_t op, uint64_t completions, uint64_t rows, uint64_t bytes_in,
              uint64_t bytes_out);
void hrx_wait_begin(uint32_t op, int direction);
void hrx_wait_end(void);
void hrx_resource_wait_begin(uint32_t resource);
void hrx_resource_held(uint32_t resource);
void hrx_resource_released(uint32_t resource, uint64_t bytes);
void hrx_queue_level(uint32_t queue, uint32_t occupancy);
void hrx_queue_capacity(uint32_t queue, uint32_t capacity);
void hrx_step(uint64_t wait_ns, uint64_t compute_ns, uint64_t rows);

/* ---- Operators by handle ----
 *
 * A handle is a number below HRX_MAX_HANDLES that the caller chose for a (name, kind). On a thread
 * it stands for the operator that was bound to it and to the thread's stage. A call that finds none
 * bound (first use, another stage, after a fork, after the accounts were opened again) does nothing
 * and returns 1: then hrx_account_open where needed, hrx_thread_stage if hrx_stage_here gives none,
 * hrx_operator, hrx_bind, and call again. */
enum { HRX_MAX_HANDLES = 1024 };
/* The stage to which the calling thread's handles belong; 0xffffffff: none was said, 64: one that
 * the segment had no room for. Other than hrx_thread_begin it does not move the thread's time to
 * the stage. */
uint32_t hrx_stage_here(void);
void hrx_thread_stage(uint32_t stage);
void hrx_bind(uint32_t handle, uint32_t stage, uint32_t op);
/* Enters the operator. */
int hrx_begin(uint32_t handle);
/* Leaves its innermost frame and whatever was entered inside it and not left; nothing when the
 * thread is not inside it. hrx_end_one: and one element, of `rows` rows, is done. */
int hrx_end(uint32_t handle);
int hrx_end_one(uint32_t handle, uint32_t rows);
/* Adds work done, by the operator or by the innermost one the thread is inside. */
int hrx_count(uint32_t handle, uint64_t completions, uint64_t rows, uint64_t bytes_in,
              uint64_t bytes_out);
void hrx_count_here(uint64_t rows, uint64_t bytes_in, uint64_t bytes_out);
/* One element, of one row, is done and the operator begins with the next: hrx_end_one and hrx_begin
 * in one. */
int hrx_next_one(uint32_t handle);
/* As hrx_end, and so many elements are done, of one row each. */
int hrx_end_some(uint32_t handle, uint32_t completions);
/* The thread has nothing to do until its results are taken: a wait of the operator for room
 * downstream. hrx_begin_after(waiting, handle) ends that wait, if there is one, and enters. */
int hrx_idle(uint32_t handle);
int hrx_begin_after(uint32_t waiting, uint32_t handle);
/* hrx_end_one and hrx_idle in one. */
int hrx_end_idle(uint32_t handle, uint32_t rows);

/* The operator waits for input, until hrx_wait_in_end, which leaves that wait with everything
 * entered inside it. */
int hrx_wait_in(uint32_t handle);
int hrx_wait_in_end(uint32_t handle);

/* Leaves the operator `from`, which has taken `bytes`, and enters `to`, which completes one
 * element: three calls in one. */
int hrx_pass_on(uint32_t from, uint32_t to, uint32_t bytes);

/* ---- A consumer: a thread that asks for batches and computes between two requests ----
 *
 * hrx_consumer_begin once on the thread, then hrx_next_begin before asking and hrx_next_end after
 * having got a batch (or hrx_next_failed: none came). The request is a wait of `consumer_op` (kind
 * "consumer"), or work of `source_op` where the thread makes the batch itself; inside it the
 * thread's handles belong to `source_stage`. A step ends when a source that already gave a batch in
 * this step is asked again; so several sources asked in turn make one step. Requests made inside
 * another request of the thread are no steps. After hrx_consumer_step, steps of this process end
 * there and nowhere else.
 *
 * `served` is 0 for a new source, afterwards what its last hrx_next_end returned. hrx_next_begin
 * and hrx_consumer_step return 1, having done nothing, on a thread that is no consumer. */
void hrx_consumer_begin(uint32_t consumer_op);
int hrx_is_consumer(void); /* 1 if that was done on this thread, in this segment */
int hrx_next_begin(uint32_t source_op, uint32_t source_stage, uint32_t served);
uint32_t hrx_next_end(uint32_t source_op, uint32_t rows);
void hrx_next_failed(uint32_t source_op);
/* The thread waited for its batches from `begin_ns` (CLOCK_MONOTONIC) until now, and not in a
 * request that succeeds: as its workers started or ended. It is waiting of the step under way;
 * where none is, the next one begins so much earlier. */
void hrx_waited_since(uint64_t begin_ns);
/* No more requests will come from that source: its last step ends. One that took far longer than
 * those before is left out, as the program kept its source for longer than it trained. */
void hrx_next_closed(uint32_t served);
/* A step ends now. `rows` < 0: those of the batches got since the last. */
int hrx_consumer_step(int64_t rows);

/* What a source of batches and its requests need, kept by the caller: the same calls with fewer
 * arguments. `look_every_ns` 0: there is no queue to look at. */
struct hrx_source {
  uint32_t op, stage; /* source_op and source_stage */
  uint32_t served;
  uint32_t reserved;
  uint64_t look_every_ns, look_ns; /* when the queue is to be looked at next */
  int64_t taken;                   /* batches since the last look; -1: there was none */
};
/* hrx_next_begin, hrx_next_end, hrx_next_failed. HRX_LOOK instead of 0: the queue is to be looked
 * at now, by hrx_queue_sampled with what hrx_source_looked returns. */
enum { HRX_LOOK = 2 };
int hrx_ask(struct hrx_source* source);
int hrx_got(struct hrx_source* source, uint32_t rows);
void hrx_got_none(struct hrx_source* source);
int hrx_source_looked(struct hrx_source* source);
/* 1 while the calling thread is inside such a request. */
int hrx_is_asking(void);

/* Like hrx_queue_level for a queue that can be looked at only now and then: between two looks its
 * occupancy is taken to have changed half-way. `taken` elements left it since the last look, as far
 * as is known; -1: the time since the last look is left out. One thread at a time for each queue.
 */
void hrx_queue_sampled(uint32_t queue, uint32_t occupancy, int taken);

/* Puts those calls that Python makes for every element into `dict`, a PyObject*, by name: as
 * functions of the interpreter's own kind, which are called faster than by ctypes; and
 * hrx_items(dataset, indices, handle), which is [dataset[index] for index in indices] inside the
 * operator of that handle, every item an element: it was entered for the first, and is left. The
 * caller holds the interpreter's lock. 1: that cannot be done here. */
int hrx_python_calls(void* dict);

/* ---- Work of threads that keep no accounts ----
 *
 * A framework's own threads, whose work somebody else knows: the calling thread tells it now and
 * then. hrx_worked: since it last did, that operator took `busy_ns`, between `cpu_low_ns` and
 * `cpu_high_ns` of it on a CPU, waited for its input for `wait_in_ns` beside that, and completed so
 * many elements. Such an operator is never entered, by which readers know that nobody else measured
 * its time. hrx_stage_lived: meanwhile the stage's threads lived for `lifetime_ns` together,
 * `inside_ns` of it in operators that were told, and used `cpu_ns`. */
void hrx_worked(uint32_t op, uint64_t completions, uint64_t busy_ns, uint64_t cpu_low_ns,
                uint64_t cpu_high_ns, uint64_t wait_in_ns);
void hrx_stage_lived(uint32_t stage, uint64_t lifetime_ns, uint64_t inside_ns, uint64_t cpu_ns);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_PROBES_PYTHON_ACCOUNT_LIBRARY_H_ */
