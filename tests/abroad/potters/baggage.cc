// Airport baggage: guesses from the belt's weight curves which suitcase will be oversize.
// The curves come from the belt's controller (played here by a child process), which takes a few
// milliseconds for each request; four threads ask it, the main thread trains.
// Build: g++ -O2 -std=c++20 -pthread baggage.cc -o baggage
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <vector>

constexpr int kBags = 16, kPoints = 1024;
using Curves = std::vector<float>;

[[noreturn]] void controller(int listening) {
  for (;;) {
    const int line = accept(listening, nullptr, nullptr);
    std::thread([line] {
      Curves curves(kBags * kPoints);
      for (uint32_t belt; recv(line, &belt, sizeof belt, MSG_WAITALL) == sizeof belt;) {
        for (float& point : curves) {
          belt = belt * 1664525u + 1013904223u;
          point = float(belt >> 8) / 8388608.f - 1.f;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(4));  // the scale settles
        if (send(line, curves.data(), curves.size() * sizeof(float), MSG_NOSIGNAL) < 0) break;
      }
      close(line);
    }).detach();
  }
}

class BeltClient {
 public:
  explicit BeltClient(uint16_t port) : line_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(line_, reinterpret_cast<sockaddr*>(&address), sizeof address))
      throw std::runtime_error("no controller");
  }
  ~BeltClient() { close(line_); }
  __attribute__((noinline)) Curves Fetch(uint32_t belt) {
    Curves curves(kBags * kPoints);
    std::lock_guard lock(mutex_);  // request and answer belong together
    send(line_, &belt, sizeof belt, MSG_NOSIGNAL);
    if (recv(line_, curves.data(), curves.size() * sizeof(float), MSG_WAITALL) <= 0)
      throw std::runtime_error("controller gone");
    return curves;
  }

 private:
  int line_;
  std::mutex mutex_;
};

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    if (!std::strcmp(argv[i], "--fix")) fix = true;
  }
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) || listen(listening, 8))
    return 1;
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  const pid_t child = fork();
  if (child == 0) controller(listening);

  std::queue<Curves> ready;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> closed{false};
  std::vector<std::shared_ptr<BeltClient>> clients;
  std::vector<std::thread> askers;
  for (uint32_t a = 0; a < 4; ++a) {
    clients.push_back(a == 0 || fix ? std::make_shared<BeltClient>(address.sin_port) : clients[0]);
    askers.emplace_back([&, a, client = clients.back()] {
      for (uint32_t belt = a; !closed; belt += 4) {
        Curves curves = client->Fetch(belt);
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return closed || ready.size() < 8; });
        ready.push(std::move(curves));
        changed.notify_all();
      }
    });
  }

  std::vector<float> weights(kPoints);
  auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double warm = std::fmin(1.0, seconds / 5), start = now();
  double since = 0, t = start;
  long batches = 0;
  while (t - start < seconds) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty(); });
    Curves curves = std::move(ready.front());
    ready.pop();
    changed.notify_all();
    lock.unlock();
    for (const float* curve = curves.data(); curve != curves.data() + curves.size();
         curve += kPoints) {
      float sum = 0;
      for (int i = 0; i < kPoints; ++i) sum += curve[i] * weights[i];
      const float error = 1 / (1 + std::exp(-sum)) - (curve[kPoints / 2] > 0);
      for (int i = 0; i < kPoints; ++i) weights[i] -= 1e-3f * error * curve[i];
    }
    t = now();
    if (since > 0)
      ++batches;
    else if (t - start >= warm)
      since = t;
  }
  {
    std::lock_guard lock(mutex);
    closed = true;
  }
  changed.notify_all();
  for (auto& asker : askers) asker.join();
  clients.clear();
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
  std::printf("rate %.3f batches/s\n", batches / (t - since));
}
