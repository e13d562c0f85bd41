/* A pipeline of your own whose number of decoding threads, and the queue behind them, can be set
 * while it runs: it looks at a file with two numbers, "THREADS CAPACITY", ten times a second. See
 * docs/tune-foreign.md. cc -std=c11 -O2 tunable.c -o tunable -lpthread        (-I where
 * headrace/account.h is)
 *   ./tunable 60 settings.txt                              for 60 seconds */
#include <headrace/account.h>

enum { kMostThreads = 16, kRows = 64 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t level, wanted = 1, running, capacity = 2; /* under the mutex */
static uint32_t stage, decode_op, queue;

static void sleep_us(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static void* decode(void* number) {
  const uint32_t me = (uint32_t)(uintptr_t)number;
  hr_thread_begin(stage);
  pthread_mutex_lock(&mutex);
  while (me < wanted) {
    pthread_mutex_unlock(&mutex);
    hr_enter(decode_op), sleep_us(8000), hr_leave(); /* a batch takes 8 ms, as from a slow store */
    hr_done(decode_op, 1, kRows, 65536, 65536);
    hr_wait_begin(decode_op, HR_WAIT_OUT), pthread_mutex_lock(&mutex);
    while (level >= capacity) pthread_cond_wait(&changed, &mutex);
    hr_wait_end(), hr_queue_level(queue, ++level);
    pthread_cond_broadcast(&changed);
  }
  --running;
  pthread_mutex_unlock(&mutex);
  hr_thread_end();
  return NULL;
}

/* Under the mutex: as many threads as are wanted; those too many end by themselves, the last first.
 */
static void set(uint32_t threads, uint32_t places) {
  static pthread_t last;
  if (threads < 1 || threads > kMostThreads || places < 1 || places > 1024) return;
  if (threads > wanted && running > wanted)
    return; /* some are still ending: the next look sets it */
  wanted = threads;
  for (; running < wanted; ++running) {
    pthread_create(&last, NULL, decode, (void*)(uintptr_t)running);
    pthread_detach(last);
  }
  hr_stage_parallelism(stage, wanted);
  if (capacity != places) hr_queue_capacity(queue, capacity = places);
  pthread_cond_broadcast(&changed);
}

static void* watch(void* path) {
  for (;; sleep_us(100000)) {
    unsigned threads = 0, places = 0;
    FILE* file = fopen(path, "r");
    const int found = file ? fscanf(file, "%u %u", &threads, &places) : 0;
    if (file) fclose(file);
    pthread_mutex_lock(&mutex);
    if (found == 2 && (threads != wanted || places != capacity)) set(threads, places);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 60);
  pthread_t watcher;
  hr_account_open("tunable");
  stage = hr_stage("decode", 1, kMostThreads);
  decode_op = hr_operator("decode", "decode", stage);
  queue = hr_queue("ready", stage, HR_NONE, capacity);
  pthread_mutex_lock(&mutex);
  set(1, capacity);
  pthread_mutex_unlock(&mutex);
  if (argc > 2) pthread_create(&watcher, NULL, watch, argv[2]);
  while (time(NULL) < end) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pthread_mutex_lock(&mutex);
    while (level == 0) pthread_cond_wait(&changed, &mutex);
    hr_queue_level(queue, --level);
    pthread_cond_broadcast(&changed), pthread_mutex_unlock(&mutex);
    clock_gettime(CLOCK_MONOTONIC, &after);
    sleep_us(2000); /* an accelerator computes */
    hr_step(
        (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec),
        2000000, kRows);
  }
  return 0;
}
