// Rows of an embedding file: a gatherer thread maps the file for each batch, copies random rows and
// unmaps it; the main thread fits a linear probe.
// --fix: the file is mapped once.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

constexpr size_t kWidth = 64, kRows = 400000, kBatch = 768, kBytes = kRows * kWidth * sizeof(float);
using Batch = std::vector<float>;

class Queue {
 public:
  void put(Batch&& batch) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return batches.size() < 8 || closed; });
    batches.push_back(std::move(batch));
    changed.notify_all();
  }
  Batch get() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !batches.empty(); });
    Batch batch = std::move(batches.front());
    batches.pop_front();
    changed.notify_all();
    return batch;
  }
  void close() {
    std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }
  bool over() {
    std::lock_guard lock(mutex);
    return closed;
  }

 private:
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> batches;
  bool closed = false;
};

const float* map_rows(int file) {
  void* at = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return static_cast<const float*>(at);
}

void gather(int file, bool once, Queue& queue) {
  std::mt19937 random(1);
  const float* rows = once ? map_rows(file) : nullptr;
  while (!queue.over()) {
    if (!once) rows = map_rows(file);
    Batch batch(kBatch * kWidth);
    for (size_t k = 0; k < kBatch; ++k)
      std::memcpy(&batch[k * kWidth], rows + random() % kRows * kWidth, kWidth * sizeof(float));
    if (!once) munmap(const_cast<float*>(rows), kBytes);
    queue.put(std::move(batch));
  }
}

int main(int count, char** words) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < count; ++i) {
    if (!std::strcmp(words[i], "--fix")) fix = true;
    if (!std::strcmp(words[i], "--seconds") && i + 1 < count) seconds = std::atof(words[++i]);
  }
  char path[] = "/tmp/rowsXXXXXX";
  int file = mkstemp(path);
  unlink(path);
  std::vector<float> some(kWidth * 4000);
  for (size_t i = 0; i < some.size(); ++i) some[i] = float(i * 2654435761u % 1000) / 1000;
  for (size_t wrote = 0; wrote < kBytes; wrote += some.size() * sizeof(float)) {
    if (write(file, some.data(), some.size() * sizeof(float)) < 0) return 1;
  }
  Queue queue;
  std::thread gatherer(gather, file, fix, std::ref(queue));
  std::vector<float> weights(kWidth - 1);
  long batches = 0;
  double passed = 0, loss = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (passed < seconds) {
    const Batch batch = queue.get();
    for (size_t k = 0; k < kBatch; ++k) {
      const float* row = &batch[k * kWidth];
      float error = -row[kWidth - 1];
      for (size_t i = 0; i + 1 < kWidth; ++i) error += weights[i] * row[i];
      for (size_t i = 0; i + 1 < kWidth; ++i) weights[i] -= 1e-4f * error * row[i];
      loss += error * error;
    }
    ++batches;
    passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  queue.close();
  gatherer.join();
  std::fprintf(stderr, "loss %g\n", loss / batches / kBatch);
  std::printf("rate %.3f batches/s\n", batches / passed);
}
