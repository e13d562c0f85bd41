// Learns from the rounds of a mobile game how long its players stay.
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

constexpr int kMoves = 24;
constexpr int kBatch = 64;

struct Round {
  std::array<float, kMoves> moves;
  float minutes_played;
};
using Rounds = std::vector<Round>;

// Where the game hall leaves finished rounds for the training.
class Lobby {
 public:
  explicit Lobby(bool notify) : notify_(notify) {}

  void Leave(Rounds rounds, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (waiting_.size() >= kSeats) {
      if (stop.stop_requested()) return;
      Rest(lock);
    }
    waiting_.push_back(std::move(rounds));
    if (notify_) changed_.notify_one();
  }

  Rounds Fetch() {
    std::unique_lock lock(mutex_);
    while (waiting_.empty()) Rest(lock);
    Rounds rounds = std::move(waiting_.front());
    waiting_.pop_front();
    if (notify_) changed_.notify_one();
    return rounds;
  }

 private:
  static constexpr size_t kSeats = 4;

  void Rest(std::unique_lock<std::mutex>& lock) {
    if (notify_) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      return;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    lock.lock();
  }

  const bool notify_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Rounds> waiting_;
};

void PlayRounds(std::stop_token stop, Lobby& lobby) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> skill(-1.0f, 1.0f);
  while (!stop.stop_requested()) {
    Rounds rounds(kBatch);
    for (Round& round : rounds) {
      float sum = 0.0f;
      for (float& move : round.moves) sum += move = skill(random);
      round.minutes_played = std::tanh(sum / 3.0f) + 0.1f * skill(random);
    }
    lobby.Leave(std::move(rounds), stop);
  }
}

void Learn(std::array<float, kMoves>& weights, const Rounds& rounds) {
  for (const Round& round : rounds) {
    const float guess =
        std::tanh(std::inner_product(weights.begin(), weights.end(), round.moves.begin(), 0.0f));
    const float miss = guess - round.minutes_played;
    const float slope = 0.05f * miss * (1.0f - guess * guess);
    for (int m = 0; m < kMoves; ++m) weights[m] -= slope * round.moves[m];
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 6.0;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--fix") == 0) fix = true;
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  Lobby lobby(fix);
  std::jthread players(PlayRounds, std::ref(lobby));
  std::array<float, kMoves> weights{};
  long counted = 0;
  const auto start = std::chrono::steady_clock::now();
  for (double elapsed = 0.0; elapsed < seconds;) {
    Learn(weights, lobby.Fetch());
    if (elapsed >= 1.0) ++counted;
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  players.request_stop();
  std::printf("rate %.3f batches/s\n", counted / (seconds - 1.0));
}
