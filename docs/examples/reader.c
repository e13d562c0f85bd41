/* A pipeline of your own with operator accounts: a reader, a queue, a consumer. Build and look:
 *   cc -std=c11 -O2 reader.c -o reader -lpthread   (add -I for headrace/account.h)
 *   ./reader 20 & headrace profile -p $! -d 5s && headrace report latest */
#include <headrace/account.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t level, queue, reading, decoding, read_op, decode_op;

static void *produce(void *unused) {
  hr_thread_begin(reading);
  for (uint64_t sum = 0;; sum++) {
    hr_enter(read_op), usleep(1000), hr_leave(); /* blocked: storage */
    hr_enter(decode_op);                         /* on the CPU */
    for (int i = 0; i < 1000000; i++) sum += sum >> 3 ^ (uint64_t)i;
    hr_leave(), hr_done(decode_op, 1, 64, 4096 + (sum & 1), 8192);
    hr_wait_begin(decode_op, HR_WAIT_OUT), pthread_mutex_lock(&mutex);
    while (level == 4) pthread_cond_wait(&changed, &mutex);
    hr_wait_end(), hr_queue_level(queue, ++level);
    pthread_cond_broadcast(&changed), pthread_mutex_unlock(&mutex);
  }
  return unused;
}

int main(int argc, char **argv) {
  pthread_t thread;
  uint64_t end = hr_clock_ns_(CLOCK_MONOTONIC) + (argc > 1 ? strtoull(argv[1], 0, 10) : 20) * 1000000000u;
  hr_account_open("my_reader");
  reading = hr_stage("reading", 1, 0), decoding = HR_NONE;
  read_op = hr_operator("read", "fetch", reading);
  decode_op = hr_operator("decode", "decode", reading);
  queue = hr_queue("ready", reading, decoding, 4);
  pthread_create(&thread, NULL, produce, NULL);
  for (uint64_t t0 = hr_clock_ns_(CLOCK_MONOTONIC), t1; t0 < end; t0 = t1 + 500000) {
    pthread_mutex_lock(&mutex);
    while (level == 0) pthread_cond_wait(&changed, &mutex);
    hr_queue_level(queue, --level);
    pthread_cond_broadcast(&changed), pthread_mutex_unlock(&mutex);
    t1 = hr_clock_ns_(CLOCK_MONOTONIC), usleep(500); /* an accelerator computes */
    hr_step(t1 - t0, 500000, 64);
  }
  return 0;
}
