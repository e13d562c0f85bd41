// Reads of a simulated sensor are filtered by threads of a pipeline and classified by the main
// thread.
//   sensor_pipe [--seconds S] [--fix]: --fix filters with a shorter kernel.
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

using Block = std::vector<float>;
using Clock = std::chrono::steady_clock;

template <class T>
class Channel {
 public:
  explicit Channel(size_t capacity) : capacity_(capacity) {}

  bool send(T value) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(value));
    filled_.notify_one();
    return true;
  }

  std::optional<T> receive() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T value = std::move(items_.front());
    items_.pop_front();
    room_.notify_one();
    return value;
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
    filled_.notify_all();
  }

 private:
  const size_t capacity_;
  std::deque<T> items_;
  std::mutex mutex_;
  std::condition_variable room_, filled_;
  bool closed_ = false;
};

static void read_sensor(Channel<Block>& out) {
  unsigned state = 1;
  for (;;) {
    Block block(8192);
    for (auto& v : block) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(state >> 16) / 65536.f - 0.5f;
    }
    if (!out.send(std::move(block))) return;
  }
}

static void filter(Channel<Block>& in, Channel<Block>& out, size_t taps) {
  std::vector<float> kernel(taps);
  for (size_t k = 0; k < taps; ++k) kernel[k] = std::cos(0.01f * k) / taps;
  while (auto block = in.receive()) {
    Block result(block->size() - taps);
    for (size_t i = 0; i < result.size(); ++i) {
      float sum = 0;
      for (size_t k = 0; k < taps; ++k) sum += kernel[k] * (*block)[i + k];
      result[i] = sum;
    }
    if (!out.send(std::move(result))) return;
  }
}

static float classify(const Block& block) {
  float best = 0;
  for (float w = 0.1f; w < 12.f; w += 0.1f) {
    float real = 0;
    for (size_t i = 0; i < block.size(); i += 8) real += block[i] * w;
    best = std::max(best, std::fabs(real));
  }
  return best;
}

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fix")) fix = true;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  Channel<Block> raw(4), ready(4);
  std::thread sensor([&] { read_sensor(raw); });
  std::thread worker([&] { filter(raw, ready, fix ? 100 : 900); });
  const auto begin = Clock::now();
  long count = 0;
  float kept = 0;
  double took = 0;
  while (took < seconds) {
    kept += classify(*ready.receive());
    ++count;
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::printf("rate %.3f batches/s\n", count / took);
  std::fflush(stdout);
  raw.close();
  ready.close();
  sensor.join();
  worker.join();
  return kept < 0;
}
