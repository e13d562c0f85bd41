// Lidar sweeps: a thread makes grids of height from the points, and the main thread fits a plane
// model to them.
//
// g++ -O2 -std=c++17 -pthread lidar_sweeps.cc -o lidar_sweeps
// --fix: the main thread waits with a condition variable.
#include <algorithm>
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

using Clock = std::chrono::steady_clock;
constexpr int kSide = 64, kPoints = 20000;

struct Sweeps {
  std::mutex mutex;
  std::condition_variable room, ready;
  std::deque<std::vector<float>> grids;
  bool over = false;

  void push(std::vector<float> grid) {
    std::unique_lock<std::mutex> hold(mutex);
    room.wait(hold, [&] { return grids.size() < 2 || over; });
    grids.push_back(std::move(grid));
    ready.notify_one();
  }
  bool try_pop(std::vector<float>& grid) {
    std::unique_lock<std::mutex> hold(mutex);
    if (grids.empty()) return false;
    grid = std::move(grids.front());
    grids.pop_front();
    room.notify_one();
    return true;
  }
  void pop(std::vector<float>& grid) {
    {
      std::unique_lock<std::mutex> hold(mutex);
      ready.wait(hold, [&] { return !grids.empty(); });
    }
    try_pop(grid);
  }
  void close() {
    std::unique_lock<std::mutex> hold(mutex);
    over = true;
    room.notify_all();
  }
};

void read_sweeps(Sweeps& sweeps) {
  std::minstd_rand random(5);
  std::uniform_real_distribution<float> place(0, kSide);
  while (true) {
    {
      std::unique_lock<std::mutex> hold(sweeps.mutex);
      if (sweeps.over) return;
    }
    std::vector<float> grid(kSide * kSide, -10);
    for (int point = 0; point < kPoints; ++point) {
      float x = place(random), y = place(random);
      float z = 0.03f * x - 0.01f * y + std::sin(x * 0.3f) * 0.2f;
      float& cell = grid[int(y) * kSide + int(x)];
      if (z > cell) cell = z;
    }
    sweeps.push(std::move(grid));
  }
}

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    if (!std::strcmp(argv[i], "--fix")) fix = true;
  }
  Sweeps sweeps;
  std::thread reader(read_sweeps, std::ref(sweeps));
  double a = 0, b = 0, c = 0;
  std::vector<float> grid;
  auto since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  auto start = Clock::now();
  double warm = std::min(1.0, seconds / 5);
  long batches = 0, skipped = -1;
  double began = 0;
  while (since(start) < seconds) {
    if (fix) {
      sweeps.pop(grid);
    } else {
      while (!sweeps.try_pop(grid)) std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
    for (int round = 0; round < 20; ++round) {
      double ga = 0, gb = 0, gc = 0;
      for (int y = 0; y < kSide; ++y)
        for (int x = 0; x < kSide; ++x) {
          double wrong = a * x / kSide + b * y / kSide + c - grid[y * kSide + x];
          ga += wrong * x / kSide, gb += wrong * y / kSide, gc += wrong;
        }
      a -= 1e-4 * ga, b -= 1e-4 * gb, c -= 1e-4 * gc;
    }
    ++batches;
    if (skipped < 0 && since(start) >= warm) skipped = batches, began = since(start);
  }
  double took = since(start) - began;
  sweeps.close();
  reader.join();
  std::fprintf(stderr, "plane %.3f %.3f %.3f\n", a, b, c);
  std::printf("rate %.3f batches/s\n", (batches - skipped) / took);
  return 0;
}
