// Click-through model: two reader threads pick impressions at random from a log on disk, the main
// thread trains a logistic regression on them.   g++ -O2 -g -std=c++20 -pthread click_model.cc -o
// click_model
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

constexpr size_t kRecord = 4096, kFeatures = kRecord / sizeof(float) - 1, kRecords = 32768,
                 kBatch = 64, kGroup = 256;
using Clock = std::chrono::steady_clock;
using Impression = std::vector<float>;  // label, then the features
using Batch = std::vector<Impression>;

void WriteLog(const std::string& path) {
  std::mt19937 rng(41);
  std::vector<float> record(kRecord / sizeof(float)), noise(1 << 16);
  std::normal_distribution<float> normal;
  for (auto& value : noise) value = normal(rng);
  int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  for (size_t n = 0; n < kRecords; n++) {
    std::memcpy(record.data(), noise.data() + rng() % (noise.size() - record.size()), kRecord);
    record[0] = record[1] + record[2] > 0 ? 1.f : 0.f;
    if (write(fd, record.data(), kRecord) != ssize_t(kRecord)) std::perror("write"), std::exit(1);
  }
  fsync(fd);
  close(fd);
}

class BatchQueue {
 public:
  void Push(Batch batch) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return batches_.size() < 8 || closed_; });
    batches_.push_back(std::move(batch));
    ready_.notify_one();
  }
  Batch Pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !batches_.empty(); });
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    room_.notify_one();
    return batch;
  }
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }
  bool closed() {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Batch> batches_;
  bool closed_ = false;
};

// Reads `group` neighbouring records at a time (1: wholly random order) and shuffles them. The log
// is larger than memory in production, so the page cache is left out of it.
void ReadImpressions(const std::string& path, size_t group, unsigned seed, BatchQueue& queue) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECT);
  if (fd < 0) std::perror("open"), std::exit(1);
  auto* buffer = static_cast<float*>(std::aligned_alloc(4096, group * kRecord));
  std::mt19937 rng(seed);
  std::vector<size_t> order(group);
  for (size_t i = 0; i < group; i++) order[i] = i;
  Batch batch;
  while (!queue.closed()) {
    off_t place = off_t(rng() % (kRecords / group)) * group * kRecord;
    if (pread(fd, buffer, group * kRecord, place) != ssize_t(group * kRecord))
      std::perror("pread"), std::exit(1);
    std::shuffle(order.begin(), order.end(), rng);
    for (size_t i : order) {
      float* record = buffer + i * (kFeatures + 1);
      batch.emplace_back(record, record + kFeatures + 1);
      if (batch.size() == kBatch) queue.Push(std::move(batch)), batch = Batch();
    }
  }
  std::free(buffer);
  close(fd);
}

double TrainBatch(std::vector<float>& weights, const Batch& batch) {
  double loss = 0;
  for (const auto& row : batch) {
    float score = 0;
    for (size_t k = 1; k <= kFeatures; k++) score += weights[k] * row[k];
    float p = 1 / (1 + std::exp(-score)), error = p - row[0];
    loss -= std::log(std::max(1e-6f, row[0] > 0.5f ? p : 1 - p));
    for (size_t k = 1; k <= kFeatures; k++) weights[k] -= 0.002f * error * row[k];
  }
  return loss / batch.size();
}

int main(int argc, char** argv) {
  double seconds = 6;
  size_t group = 1;
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    if (!std::strcmp(argv[i], "--fix")) group = kGroup;
  }
  auto folder = std::filesystem::temp_directory_path() / ("clicks_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::string path = folder / "impressions.bin";
  WriteLog(path);
  BatchQueue queue;
  std::vector<std::thread> readers;
  for (unsigned seed = 1; seed <= 2; seed++)
    readers.emplace_back([&, seed] { ReadImpressions(path, group, seed, queue); });
  std::vector<float> weights(kFeatures + 1);
  const double warm = std::min(1.0, seconds / 5);
  auto first = Clock::now();
  double loss = 0, since = -1, now = 0;
  long batches = 0, skipped = 0;
  while (now < seconds) {
    loss = TrainBatch(weights, queue.Pop());
    if (!batches++) first = Clock::now();
    now = std::chrono::duration<double>(Clock::now() - first).count();
    if (since < 0 && now >= warm) since = now, skipped = batches;
  }
  queue.Close();
  for (auto& reader : readers) reader.join();
  std::filesystem::remove_all(folder);
  std::printf("loss %.4f\nrate %.3f batches/s\n", loss, (batches - skipped) / (now - since));
}
