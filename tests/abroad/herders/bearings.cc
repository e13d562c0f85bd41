// Wear of ball bearings from vibration: one thread cuts windows out of a recording, another trains
// a small network.
#include <atomic>
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

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr int kWindow = 256, kBatch = 32, kHidden = 32;

struct Batch {
  std::vector<float> x, y;
};

class Conveyor {
 public:
  explicit Conveyor(bool notify) : notify_(notify) {}

  void put(Batch batch) {
    std::unique_lock lock(mutex_);
    while (batches_.size() >= kRoom && !closed) rest(lock, room_);
    batches_.push_back(std::move(batch));
    filled_.notify_one();
  }

  Batch take() {
    std::unique_lock lock(mutex_);
    while (batches_.empty()) rest(lock, filled_);
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    room_.notify_one();
    return batch;
  }

  void close() {
    closed = true;
    room_.notify_all();
  }

  std::atomic<bool> closed{false};

 private:
  void rest(std::unique_lock<std::mutex>& lock, std::condition_variable& changed) {
    if (notify_) {
      changed.wait_for(lock, 100ms);
      return;
    }
    lock.unlock();
    std::this_thread::sleep_for(10ms);
    lock.lock();
  }

  static constexpr size_t kRoom = 2;
  bool notify_;
  std::mutex mutex_;
  std::condition_variable filled_, room_;
  std::deque<Batch> batches_;
};

void cutWindows(Conveyor& conveyor, const std::vector<float>& recording) {
  std::mt19937 rng(3);
  while (!conveyor.closed) {
    Batch batch;
    for (int i = 0; i < kBatch; i++) {
      size_t start = rng() % (recording.size() - kWindow);
      batch.x.insert(batch.x.end(), recording.begin() + start, recording.begin() + start + kWindow);
      batch.y.push_back(std::sin(start * 1e-4f));
    }
    conveyor.put(std::move(batch));
  }
}

struct WearNet {
  std::vector<float> w = std::vector<float>(kHidden * kWindow, 0.01f),
                     v = std::vector<float>(kHidden, 0.1f);

  void step(const Batch& batch) {
    for (int n = 0; n < kBatch; n++) {
      const float* x = &batch.x[n * kWindow];
      float h[kHidden], out = 0;
      for (int j = 0; j < kHidden; j++) {
        float sum = 0;
        for (int i = 0; i < kWindow; i++) sum += w[j * kWindow + i] * x[i];
        out += v[j] * (h[j] = std::tanh(sum));
      }
      float slope = 0.001f * (out - batch.y[n]);
      for (int j = 0; j < kHidden; j++) {
        float back = slope * v[j] * (1 - h[j] * h[j]);
        v[j] -= slope * h[j];
        for (int i = 0; i < kWindow; i++) w[j * kWindow + i] -= back * x[i];
      }
    }
  }
};

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--fix")) fix = true;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  std::mt19937 rng(1);
  std::normal_distribution<float> noise;
  std::vector<float> recording(400'000);
  for (float& sample : recording) sample = noise(rng);
  Conveyor conveyor(fix);
  std::thread cutter(cutWindows, std::ref(conveyor), std::cref(recording));
  WearNet net;
  net.step(conveyor.take());
  auto begin = Clock::now();
  auto past = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  long count = 0;
  while (past() < seconds) {
    net.step(conveyor.take());
    count++;
  }
  std::printf("rate %.3f batches/s\n", count / past());
  conveyor.close();
  cutter.join();
}
