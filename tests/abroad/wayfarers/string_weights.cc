// Predicts clicks: a reader thread makes batches of examples whose features are names, the main
// thread learns a weight for each name (AdaGrad). The weights are in a std::map with the names as
// keys. --fix: in a vector, at the name's hash.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

constexpr int EXAMPLES = 256, FIELDS = 24, NAMES = 10000;

struct Example {
  std::string names[FIELDS];
  float clicked;
};
using Batch = std::vector<Example>;

class Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> batches;
  bool over = false;

 public:
  bool put(Batch batch) {
    std::unique_lock<std::mutex> hold(mutex);
    changed.wait(hold, [&] { return over || batches.size() < 4; });
    if (over) return false;
    batches.push_back(std::move(batch));
    changed.notify_all();
    return true;
  }
  Batch take() {
    std::unique_lock<std::mutex> hold(mutex);
    changed.wait(hold, [&] { return !batches.empty(); });
    Batch batch = std::move(batches.front());
    batches.pop_front();
    changed.notify_all();
    return batch;
  }
  void end() {
    std::lock_guard<std::mutex> hold(mutex);
    over = true;
    changed.notify_all();
  }
};

struct Weight {
  float value = 0, squares = 1e-6f;
};

struct TreeWeights {
  std::map<std::string, Weight> weights;
  Weight& of(const std::string& name) { return weights[name]; }
};

struct HashedWeights {
  std::vector<Weight> weights = std::vector<Weight>(1 << 19);
  Weight& of(const std::string& name) {
    uint64_t hash = 1469598103934665603ull;
    for (unsigned char letter : name) hash = (hash ^ letter) * 1099511628211ull;
    return weights[(hash ^ hash >> 29) & ((1 << 19) - 1)];
  }
};

template <class Weights>
void learn(Weights& weights, const Batch& batch) {
  for (const Example& example : batch) {
    float sum = 0;
    for (const std::string& name : example.names) sum += weights.of(name).value;
    float slope = 1 / (1 + std::exp(-sum)) - example.clicked;
    for (const std::string& name : example.names) {
      Weight& weight = weights.of(name);
      weight.squares += slope * slope;
      weight.value -= 0.05f * slope / std::sqrt(weight.squares);
    }
  }
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Weights>
void train(Queue& queue, const std::vector<std::string>& names, double seconds) {
  Weights weights;
  for (const std::string& name : names) weights.of(name);
  double first = 0, since = 0, warm = std::min(1.0, seconds / 5), last;
  long batches = 0, skipped = 0;
  do {
    learn(weights, queue.take());
    last = now();
    ++batches;
    if (!first) first = last;
    if (!since && last - first >= warm) since = last, skipped = batches;
  } while (last - first < seconds);
  std::printf("rate %.3f batches/s\n", (batches - skipped) / std::max(last - since, 1e-9));
}

int main(int count, char** words) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < count; ++i) {
    if (!std::strcmp(words[i], "--fix")) fix = true;
    if (!std::strcmp(words[i], "--seconds") && i + 1 < count) seconds = std::atof(words[++i]);
  }
  std::vector<std::string> names;
  for (int field = 0; field < FIELDS; ++field)
    for (int value = 0; value < NAMES; ++value)
      names.push_back("f" + std::to_string(field) + "=" + std::to_string(value * 7919 % 1000003));
  Queue queue;
  std::thread reader([&] {
    std::minstd_rand draw(1);
    bool wanted = true;
    while (wanted) {
      Batch batch(EXAMPLES);
      for (Example& example : batch) {
        for (int field = 0; field < FIELDS; ++field)
          example.names[field] = names[field * NAMES + draw() % NAMES];
        example.clicked = draw() % 16 == 0;
      }
      wanted = queue.put(std::move(batch));
    }
  });
  if (fix)
    train<HashedWeights>(queue, names, seconds);
  else
    train<TreeWeights>(queue, names, seconds);
  std::fflush(stdout);
  queue.end();
  reader.join();
}
