// A generator thread of chess-like positions and a learner share a single slot; each looks at its
// flag and, when it isn't its turn, naps 4 ms.
// --fix: a mutex and condition variables.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Positions = std::vector<std::uint64_t>;

class Slot {
 public:
  explicit Slot(bool notifies) : notifies(notifies) {}

  void put(Positions&& positions) {
    await(false);
    content = std::move(positions);
    turn(true);
  }

  Positions get() {
    await(true);
    Positions positions = std::move(content);
    turn(false);
    return positions;
  }

  void close() {
    closed = true;
    turn(full);
  }

  std::atomic<bool> closed{false};

 private:
  void await(bool wanted) {
    while (!notifies && full != wanted && !closed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return full == wanted || closed; });
  }

  void turn(bool now) {
    std::lock_guard lock(mutex);
    full = now;
    changed.notify_all();
  }

  const bool notifies;
  std::atomic<bool> full{false};
  std::mutex mutex;
  std::condition_variable changed;
  Positions content;
};

void generate(Slot& slot) {
  std::uint64_t state = 1;
  while (!slot.closed) {
    Positions positions(1024);
    for (auto& position : positions) {
      position = state = (state ^ state >> 7) * 6364136223846793005ull + 1442695040888963407ull;
    }
    slot.put(std::move(positions));
  }
}

double learn(const Positions& positions, std::vector<float>& weights) {
  double loss = 0;
  for (std::uint64_t position : positions) {
    float value = 0;
    for (int square = 0; square < 64; ++square) {
      value += (position >> square & 1) != 0 ? weights[square] : 0.0f;
    }
    const float error = value - 0.5f;
    loss += error * error;
    for (int square = 0; square < 64; ++square) {
      weights[square] -= 1e-4f * error * static_cast<float>(position >> square & 1);
    }
  }
  return loss / static_cast<double>(positions.size());
}

int main(int count, char** words) {
  double seconds = 6, passed = 0, loss = 0;
  long batches = 0;
  bool fix = false;
  for (int i = 1; i < count; ++i) {
    fix = fix || std::strcmp(words[i], "--fix") == 0;
    seconds = std::strcmp(words[i - 1], "--seconds") == 0 ? std::atof(words[i]) : seconds;
  }
  Slot slot(fix);
  std::thread generator(generate, std::ref(slot));
  std::vector<float> weights(64);
  const auto begin = Clock::now();
  for (; passed < seconds;
       passed = std::chrono::duration<double>(Clock::now() - begin).count(), ++batches) {
    loss += learn(slot.get(), weights);
  }
  slot.close();
  generator.join();
  std::fprintf(stderr, "loss %g\n", loss / static_cast<double>(batches));
  std::printf("rate %.3f batches/s\n", static_cast<double>(batches) / passed);
}
