// Tells spoken yes from no: one thread computes the clips' band energies, the other trains on them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numbers>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kBands = 16;
constexpr int kSamples = 400;
constexpr int kClips = 12;

struct Clips {
  std::vector<std::array<float, kBands>> energies;
  std::vector<float> labels;
};

// Hands batches from one thread to the other.
class Handover {
 public:
  explicit Handover(bool notified) : notified_(notified) {}

  bool Put(Clips clips) {
    std::unique_lock lock(mutex_);
    while (clips_ && !closed_) Pause(lock);
    if (closed_) return false;
    clips_ = std::move(clips);
    changed_.notify_all();
    return true;
  }

  Clips Take() {
    std::unique_lock lock(mutex_);
    while (!clips_) Pause(lock);
    Clips clips = std::move(*clips_);
    clips_.reset();
    changed_.notify_all();
    return clips;
  }

  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  void Pause(std::unique_lock<std::mutex>& lock) {
    if (notified_) {
      changed_.wait(lock);
      return;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    lock.lock();
  }

  const bool notified_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Clips> clips_;
  bool closed_ = false;
};

Clips Record(std::mt19937& random) {
  std::normal_distribution<float> noise(0, 0.5f);
  Clips clips;
  std::array<float, kSamples> wave;
  for (int n = 0; n < kClips; ++n) {
    const bool yes = random() % 2;
    for (int t = 0; t < kSamples; ++t)
      wave[t] = std::sin(0.05f * t * (yes ? 3 : 7)) + noise(random);
    auto& energies = clips.energies.emplace_back();
    for (int band = 0; band < kBands; ++band) {
      float real = 0, imaginary = 0;
      const float turn = std::numbers::pi_v<float> * (band + 1) / 32;
      for (int t = 0; t < kSamples; ++t) {
        real += wave[t] * std::cos(turn * t);
        imaginary += wave[t] * std::sin(turn * t);
      }
      energies[band] = std::log1p(real * real + imaginary * imaginary);
    }
    clips.labels.push_back(yes);
  }
  return clips;
}

void Train(std::array<float, kBands + 1>& weights, const Clips& clips) {
  for (int pass = 0; pass < 200; ++pass) {
    for (size_t n = 0; n < clips.labels.size(); ++n) {
      float sum = weights[kBands];
      for (int band = 0; band < kBands; ++band) sum += weights[band] * clips.energies[n][band];
      const float miss = 1 / (1 + std::exp(-sum)) - clips.labels[n];
      for (int band = 0; band < kBands; ++band)
        weights[band] -= 1e-4f * miss * clips.energies[n][band];
      weights[kBands] -= 1e-4f * miss;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fix")) fix = true;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  Handover handover(fix);
  std::jthread recorder([&] {
    std::mt19937 random(1);
    while (handover.Put(Record(random))) {
    }
  });
  std::array<float, kBands + 1> weights{};
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double warm = std::min(1.0, seconds / 5);
  double since = 0;
  long done = 0, skipped = 0;
  while (passed() < seconds) {
    Train(weights, handover.Take());
    ++done;
    if (since == 0 && passed() >= warm) since = passed(), skipped = done;
  }
  const double rate = (done - skipped) / (passed() - since);
  handover.Close();
  recorder.join();
  std::printf("rate %.3f batches/s\n", rate);
}
