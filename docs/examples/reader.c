/* A pipeline of your own with operator accounts: a reader thread, a queue, a consumer. Try it:
 *   cc -std=c11 -O2 reader.c -o reader -lpthread        (-I where headrace/account.h is)
 *   ./reader 20 & headrace profile -p $! -d 5s; headrace report latest */
#include <headrace/account.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t level, stage, read_op, decode_op, queue;

static void* reader(void* sum) {
  hr_thread_begin(stage);
  for (;;) {
    hr_enter(read_op), usleep(1000), hr_leave(); /* blocked, as on storage */
    hr_done(read_op, 1, 64, 4096, 4096);         /* one element: 64 rows, bytes in and out */
    hr_enter(decode_op);                         /* on a CPU */
    for (uint64_t i = 0; i < 2000000; i++) *(volatile uint64_t*)sum += i;
    hr_leave(), hr_done(decode_op, 1, 64, 4096, 8192);
    hr_wait_begin(decode_op, HR_WAIT_OUT), pthread_mutex_lock(&mutex);
    while (level == 4) pthread_cond_wait(&changed, &mutex);
    hr_wait_end(), hr_queue_level(queue, ++level);
    pthread_cond_signal(&changed), pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(int argc, char** argv) {
  uint64_t sum = 0, seconds = argc > 1 ? (uint64_t)atoi(argv[1]) : 20;
  struct timespec before, after;
  pthread_t thread;
  hr_account_open("my_reader");
  stage = hr_stage("reading", 1, 0);
  read_op = hr_operator("read", "fetch", stage), decode_op = hr_operator("decode", "decode", stage);
  queue = hr_queue("ready", stage, HR_NONE, 4);
  pthread_create(&thread, NULL, reader, &sum);
  for (time_t end = time(NULL) + (time_t)seconds; time(NULL) < end;) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    pthread_mutex_lock(&mutex);
    while (level == 0) pthread_cond_wait(&changed, &mutex);
    hr_queue_level(queue, --level);
    pthread_cond_signal(&changed), pthread_mutex_unlock(&mutex);
    clock_gettime(CLOCK_MONOTONIC, &after);
    usleep(500); /* an accelerator computes */
    hr_step(
        (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec),
        500000, 64);
  }
  return 0;
}
