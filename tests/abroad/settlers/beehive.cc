// Beehive scales: weight gain of a colony from sensor logs in text; a thread reads, the main thread
// fits.
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

constexpr int kSensors = 24, kRows = 512;
struct Batch {
  std::vector<float> x, y;
};

class BatchQueue {
 public:
  void Put(Batch batch) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return batches_.size() < 4 || closed_; });
    batches_.push_back(std::move(batch));
    some_.notify_one();
  }
  Batch Take() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [&] { return !batches_.empty(); });
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
  bool Closed() {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_, some_;
  std::deque<Batch> batches_;
  bool closed_ = false;
};

void WriteLog(const std::string& path) {
  std::mt19937 rng(6);
  std::normal_distribution<float> normal;
  std::ofstream out(path);
  for (int row = 0; row < kRows * 8; ++row) {
    float sum = 0;
    for (int i = 0; i < kSensors; ++i) {
      float v = normal(rng);
      sum += v * (i % 5);
      out << v << ' ';
    }
    out << sum + 0.1f * normal(rng) << '\n';
  }
}

__attribute__((noinline)) void ParseRowStream(const std::string& line, Batch& batch) {
  std::istringstream fields(line);
  float value;
  for (int i = 0; i < kSensors; ++i) {
    fields >> value;
    batch.x.push_back(value);
  }
  fields >> value;
  batch.y.push_back(value);
}

__attribute__((noinline)) void ParseRowChars(const std::string& line, Batch& batch) {
  const char *at = line.data(), *end = at + line.size();
  float value = 0;
  for (int i = 0; i <= kSensors; ++i) {
    while (at < end && *at == ' ') ++at;
    at = std::from_chars(at, end, value).ptr;
    (i < kSensors ? batch.x : batch.y).push_back(value);
  }
}

void ReadLogs(const std::string& path, bool chars, BatchQueue& queue) {
  while (!queue.Closed()) {
    std::ifstream in(path);
    std::string line;
    Batch batch;
    while (!queue.Closed() && std::getline(in, line)) {
      chars ? ParseRowChars(line, batch) : ParseRowStream(line, batch);
      if (batch.y.size() == kRows) {
        queue.Put(std::move(batch));
        batch = Batch();
      }
    }
  }
}

void FitBatch(const Batch& batch, std::vector<float>& weights) {
  for (int pass = 0; pass < 12; ++pass)
    for (int row = 0; row < kRows; ++row) {
      const float* x = &batch.x[row * kSensors];
      float miss = -batch.y[row];
      for (int i = 0; i < kSensors; ++i) miss += weights[i] * x[i];
      for (int i = 0; i < kSensors; ++i) weights[i] -= 0.001f * miss * x[i];
    }
}

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--fix")) fix = true;
    if (!strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::stod(argv[++i]);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "beehiveXXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  WriteLog(folder + "/scale.log");
  BatchQueue queue;
  std::thread reader(ReadLogs, folder + "/scale.log", fix, std::ref(queue));
  std::vector<float> weights(kSensors);
  double first = -1, since = -1, now = 0;
  long count = 0, skipped = 0;
  do {
    FitBatch(queue.Take(), weights);
    now =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    ++count;
    if (first < 0) first = now;
    if (since < 0 && now - first >= std::min(1.0, seconds / 5)) since = now, skipped = count;
  } while (now - first < seconds);
  queue.Close();
  reader.join();
  std::filesystem::remove_all(folder);
  std::printf("rate %.3f batches/s (weight %.2f)\n", (count - skipped) / (now - since), weights[1]);
}
