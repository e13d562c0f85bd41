// Learns tomorrow's queue length of a ski lift from the turnstile counts of the last days.
// Build: g++ -O2 -std=c++20 -pthread ski_lifts.cc -o ski_lifts
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

constexpr int kBatch = 64, kInputs = 768, kHidden = 512;
using Matrix = std::vector<float>;
struct Batch {
  Matrix counts, queue;
};

class Turnstiles {  // simulated days of all lifts, cut into batches by one thread
 public:
  explicit Turnstiles(unsigned seed) : days_(400 * kInputs) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    for (float& v : days_) v = normal(rng);
    reader_ = std::thread([this] { Read(); });
  }
  ~Turnstiles() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    reader_.join();
  }
  Batch Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty(); });
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  void Read() {
    std::mt19937 rng(7);
    for (;;) {
      Batch batch{Matrix(kBatch * kInputs), Matrix(kBatch)};
      for (int b = 0; b < kBatch; ++b) {
        const float* day = &days_[(rng() % 400) * kInputs];
        std::memcpy(&batch.counts[b * kInputs], day, kInputs * sizeof(float));
        batch.queue[b] = day[0] + 0.5f * day[7] - day[31];
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || ready_.size() < 8; });
      if (closed_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  }
  Matrix days_;
  std::deque<Batch> ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::thread reader_;
};

// c[m][n] += a[m][k] * b[k][n]
__attribute__((noinline)) void Multiply(const float* a, const float* b, float* c, int m, int k,
                                        int n, bool rows) {
  if (rows) {
    for (int i = 0; i < m; ++i)
      for (int p = 0; p < k; ++p)
        for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
  } else {
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        for (int p = 0; p < k; ++p) c[i * n + j] += a[i * k + p] * b[p * n + j];
  }
}

struct Model {
  Matrix w1 = Matrix(kInputs * kHidden), w2 = Matrix(kHidden);
  bool rows;
  explicit Model(bool by_rows) : rows(by_rows) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal(0, 0.03f);
    for (float& v : w1) v = normal(rng);
    for (float& v : w2) v = normal(rng);
  }
  __attribute__((noinline)) float Step(const Batch& batch) {
    Matrix hidden(kBatch * kHidden), back(kBatch * kHidden), across(kInputs * kBatch);
    Multiply(batch.counts.data(), w1.data(), hidden.data(), kBatch, kInputs, kHidden, rows);
    float loss = 0;
    for (int b = 0; b < kBatch; ++b) {
      float out = 0;
      for (int h = 0; h < kHidden; ++h) out += std::fmax(hidden[b * kHidden + h], 0.f) * w2[h];
      const float error = out - batch.queue[b];
      loss += error * error / kBatch;
      for (int h = 0; h < kHidden; ++h) {
        if (hidden[b * kHidden + h] <= 0) continue;
        back[b * kHidden + h] = -1e-3f * error * w2[h] / kBatch;
        w2[h] -= 1e-3f * error * hidden[b * kHidden + h] / kBatch;
      }
      for (int i = 0; i < kInputs; ++i) across[i * kBatch + b] = batch.counts[b * kInputs + i];
    }
    Multiply(across.data(), back.data(), w1.data(), kInputs, kBatch, kHidden, rows);
    return loss;
  }
};

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    if (!std::strcmp(argv[i], "--fix")) fix = true;
  }
  auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  Turnstiles turnstiles(3);
  Model model(fix);
  const double warm = std::fmin(1.0, seconds / 5), start = now();
  double since = 0, t = start;
  long batches = 0;
  float loss = 0;
  while (t - start < seconds) {
    loss = model.Step(turnstiles.Next());
    t = now();
    if (since > 0)
      ++batches;
    else if (t - start >= warm)
      since = t;
  }
  std::printf("loss %.3f\nrate %.3f batches/s\n", loss, batches / (t - since));
}
