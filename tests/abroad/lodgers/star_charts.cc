// Four threads draw charts of stars out of one catalogue, the main thread fits a blur to them.
// Drawing happens while the catalogue's mutex is held.
// --fix: the mutex is held for copying the few stars, and drawing happens outside.
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

struct Star {
  float x, y, light;
};
constexpr int side = 96, stars_a_chart = 60, charts_a_batch = 4;
using Chart = std::vector<float>;

class Catalogue {
 public:
  Catalogue() : random(7) {
    std::uniform_real_distribution<float> place(0, side), light(0.2f, 1);
    for (int i = 0; i < 50000; ++i) stars.push_back({place(random), place(random), light(random)});
  }
  std::vector<Star> some() {
    std::vector<Star> chosen;
    for (int i = 0; i < stars_a_chart; ++i) chosen.push_back(stars[random() % stars.size()]);
    return chosen;
  }
  std::mutex mutex;

 private:
  std::mt19937 random;
  std::vector<Star> stars;
};

Chart draw(const std::vector<Star>& stars) {
  Chart chart(side * side, 0.f);
  for (const Star& star : stars)
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        float dx = x - star.x, dy = y - star.y;
        chart[y * side + x] += star.light * std::exp(-(dx * dx + dy * dy) / 6.f);
      }
  return chart;
}

class Queue {
 public:
  void put(Chart chart) {
    std::unique_lock<std::mutex> hold(mutex);
    room.wait(hold, [&] { return charts.size() < 32 || closed; });
    charts.push_back(std::move(chart));
    ready.notify_one();
  }
  Chart take() {
    std::unique_lock<std::mutex> hold(mutex);
    ready.wait(hold, [&] { return !charts.empty(); });
    Chart chart = std::move(charts.front());
    charts.pop_front();
    room.notify_one();
    return chart;
  }
  void close() {
    std::lock_guard<std::mutex> hold(mutex);
    closed = true;
    room.notify_all();
  }
  bool is_closed() {
    std::lock_guard<std::mutex> hold(mutex);
    return closed;
  }

 private:
  std::mutex mutex;
  std::condition_variable room, ready;
  std::deque<Chart> charts;
  bool closed = false;
};

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fix")) fix = true;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  Catalogue catalogue;
  Queue queue;
  std::vector<std::thread> painters;
  for (int i = 0; i < 4; ++i)
    painters.emplace_back([&] {
      while (!queue.is_closed()) {
        std::unique_lock<std::mutex> hold(catalogue.mutex);
        auto stars = catalogue.some();
        if (fix) hold.unlock();
        Chart chart = draw(stars);
        if (!fix) hold.unlock();
        queue.put(std::move(chart));
      }
    });
  auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  double first = now(), since = 0, weight = 0.5;
  long batches = 0, skipped = 0;
  while (now() - first < seconds) {
    for (int i = 0; i < charts_a_batch; ++i) {
      Chart chart = queue.take();
      for (size_t p = 1; p < chart.size(); ++p)
        weight -= 1e-6 * (weight * chart[p - 1] - chart[p]) * chart[p - 1];
    }
    ++batches;
    if (!since && now() - first >= std::min(1.0, seconds / 5)) since = now(), skipped = batches;
  }
  double rate = (batches - skipped) / (now() - since);
  queue.close();
  for (auto& painter : painters) painter.join();
  std::fprintf(stderr, "weight %.4f\n", weight);
  std::printf("rate %.3f batches/s\n", rate);
}
