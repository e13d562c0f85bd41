/* A program with known stacks, compiled twice: with and without frame pointers.
 *   target spin     operators op10..op40 take 10, 20, 30 and 40 % of one thread's CPU time
 *   target sleep    thread "napper-1" sleeps in take_a_nap, thread "locked-1" waits in want_lock,
 *                   thread "timed-1" waits in wait_in_vain for what comes never, 5 ms each time
 *   target jit      code made at run time, named "made_at_run_time" in /tmp/perf-PID.map
 * Prints "ready", then runs until its input ends or, at most, for a minute. */
#include <poll.h>
#include <sys/prctl.h>

#include "probes/account/account.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

static volatile uint64_t sink;

/* Every operator spends its time in the same loop, so that shares of iterations are shares of time.
 * The arrays keep the compiler from addressing locals by the frame pointer's register alone. */
NOINLINE static void spin(long iterations) {
  uint64_t x = sink;
  for (long i = 0; i < iterations; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
}
#define HOT(percent)                                 \
  NOINLINE static void hot_##percent(long unit) {    \
    volatile char room[percent * 8];                 \
    room[0] = (char)unit;                            \
    spin(unit* percent);                             \
    room[1] = (char)sink;                            \
  }                                                  \
  NOINLINE static void middle_##percent(long unit) { \
    volatile char room[percent * 4];                 \
    room[0] = (char)unit;                            \
    hot_##percent(unit);                             \
    room[1] = (char)sink;                            \
  }
HOT(10)
HOT(20)
HOT(30)
HOT(40)

static int done(void) {
  struct pollfd in = {0, POLLIN, 0};
  static time_t begin;
  if (!begin) begin = time(NULL);
  return (poll(&in, 1, 0) > 0 && (in.revents & (POLLHUP | POLLIN))) || time(NULL) - begin > 60;
}
static void ready(void) {
  puts("ready");
  fflush(stdout);
}

NOINLINE static void run_spin(void) {
  uint32_t stage, op[4];
  hr_account_open("target");
  stage = hr_stage("work", 1, 0);
  op[0] = hr_operator("op10", "work", stage);
  op[1] = hr_operator("op20", "work", stage);
  op[2] = hr_operator("op30", "work", stage);
  op[3] = hr_operator("op40", "work", stage);
  hr_thread_begin(stage);
  ready();
  while (!done()) {
    for (int i = 0; i < 100; ++i) {
      const long unit = 800; /* about 100 us a round */
      hr_enter(op[0]), middle_10(unit), hr_leave();
      hr_enter(op[1]), middle_20(unit), hr_leave();
      hr_enter(op[2]), middle_30(unit), hr_leave();
      hr_enter(op[3]), middle_40(unit), hr_leave();
    }
  }
  hr_thread_end();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
NOINLINE static void take_a_nap(void) {
  struct timespec t = {0, 5000000};
  nanosleep(&t, NULL);
  sink++;
}
static void* napper(void* unused) {
  prctl(PR_SET_NAME, "napper-1");
  while (!done()) take_a_nap();
  return unused;
}
NOINLINE static void want_lock(void) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  sink++;
}
static void* locked(void* unused) {
  prctl(PR_SET_NAME, "locked-1");
  while (!done()) want_lock();
  return unused;
}
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
NOINLINE static void wait_in_vain(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += 5000000;
  if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
  pthread_mutex_lock(&own_lock);
  pthread_cond_timedwait(&never, &own_lock, &t);
  pthread_mutex_unlock(&own_lock);
  sink++;
}
static void* timed(void* unused) {
  prctl(PR_SET_NAME, "timed-1");
  while (!done()) wait_in_vain();
  return unused;
}
NOINLINE static void run_sleep(void) {
  pthread_t a, b, c;
  pthread_create(&a, NULL, napper, NULL);
  pthread_create(&b, NULL, locked, NULL);
  pthread_create(&c, NULL, timed, NULL);
  ready();
  while (!done()) { /* holds the lock nearly all the time */
    struct timespec hold = {0, 20000000}, pause = {0, 100000};
    pthread_mutex_lock(&lock);
    nanosleep(&hold, NULL);
    pthread_mutex_unlock(&lock);
    nanosleep(&pause, NULL);
  }
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  pthread_join(c, NULL);
}

NOINLINE static int run_jit(void) {
#if defined(__x86_64__)
  /* push rbp; mov rbp,rsp; mov ecx,edi; 1: dec ecx; jnz 1b; pop rbp; ret */
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9,
                                       0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
  unsigned char* made =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char path[64];
  FILE* map;
  if (made == MAP_FAILED) return 1;
  memcpy(made + 256, code, sizeof code);
  if (mprotect(made, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  map = fopen(path, "w");
  if (!map) return 1;
  fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)(made + 256), sizeof code);
  fclose(map);
  ready();
  while (!done()) ((void (*)(int))(uintptr_t)(made + 256))(1000000);
  unlink(path);
  return 0;
#else
  return 1;
#endif
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "spin";
  if (strcmp(what, "jit") == 0) return run_jit();
  if (strcmp(what, "sleep") == 0)
    run_sleep();
  else
    run_spin();
  return 0;
}
