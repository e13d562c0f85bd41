// Predicts the queue at ski lifts from the gates' text logs.
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

constexpr int COLUMNS = 16, BATCH = 512, ROWS = 40000;
using Clock = std::chrono::steady_clock;

struct Batch {
  std::vector<float> x, y;
};

class Belt {  // a bounded queue between the reader and the trainer
  std::mutex lock;
  std::condition_variable room, some;
  std::deque<Batch> held;
  bool closed = false;

 public:
  bool put(Batch b) {
    std::unique_lock hold(lock);
    room.wait(hold, [&] { return held.size() < 8 || closed; });
    if (closed) return false;
    held.push_back(std::move(b));
    some.notify_one();
    return true;
  }
  Batch get() {
    std::unique_lock hold(lock);
    some.wait(hold, [&] { return !held.empty(); });
    Batch b = std::move(held.front());
    held.pop_front();
    room.notify_one();
    return b;
  }
  void close() {
    std::lock_guard hold(lock);
    closed = true;
    room.notify_all();
  }
};

void write_log(const std::string& path) {
  std::mt19937 dice(4);
  std::normal_distribution<float> normal;
  FILE* out = std::fopen(path.c_str(), "w");
  for (int row = 0; row < ROWS; row++) {
    float sum = 0;
    for (int c = 0; c < COLUMNS; c++) {
      float v = normal(dice);
      sum += v * (c % 3);
      std::fprintf(out, "%.4f,", v);
    }
    std::fprintf(out, "%.4f\n", sum);
  }
  std::fclose(out);
}

void gate_row(const std::string& line, float* row) {
  std::stringstream cells(line);
  std::string cell;
  for (int c = 0; c <= COLUMNS && std::getline(cells, cell, ','); c++) row[c] = std::stof(cell);
}

void gate_row_chars(const std::string& line, float* row) {
  const char *at = line.data(), *end = at + line.size();
  for (int c = 0; c <= COLUMNS && at < end; c++) at = std::from_chars(at, end, row[c]).ptr + 1;
}

void read_log(const std::string& path, Belt& belt, bool fix) {
  for (;;) {
    std::ifstream log(path);
    std::string line;
    for (;;) {
      Batch b;
      b.x.resize(BATCH * COLUMNS);
      b.y.resize(BATCH);
      int n = 0;
      for (float row[COLUMNS + 1]; n < BATCH && std::getline(log, line); n++) {
        fix ? gate_row_chars(line, row) : gate_row(line, row);
        std::memcpy(&b.x[n * COLUMNS], row, sizeof(float) * COLUMNS);
        b.y[n] = row[COLUMNS];
      }
      if (n < BATCH) break;
      if (!belt.put(std::move(b))) return;
    }
  }
}

float train_step(const Batch& b, std::vector<float>& w) {
  std::vector<float> slope(COLUMNS);
  float loss = 0;
  for (int n = 0; n < BATCH; n++) {
    const float* x = &b.x[n * COLUMNS];
    float error = -b.y[n];
    for (int c = 0; c < COLUMNS; c++) error += w[c] * x[c];
    for (int c = 0; c < COLUMNS; c++) slope[c] += error * x[c];
    loss += error * error;
  }
  for (int c = 0; c < COLUMNS; c++) w[c] -= 0.01f * slope[c] / BATCH;
  return loss / BATCH;
}

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--fix"))
      fix = true;
    else if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc)
      seconds = std::atof(argv[++i]);
  }
  char folder[] = "/tmp/skiXXXXXX";
  if (!mkdtemp(folder)) return 1;
  std::string path = std::string(folder) + "/gates.csv";
  write_log(path);
  Belt belt;
  std::vector<float> w(COLUMNS);
  float loss = 0;
  std::thread reader(read_log, path, std::ref(belt), fix);
  auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  loss = train_step(belt.get(), w);
  auto first = Clock::now(), start = first;
  long batches = 0, skipped = -1;
  while (since(first) < seconds) {
    loss = train_step(belt.get(), w);
    batches++;
    if (skipped < 0 && since(first) >= std::min(1.0, seconds / 5)) {
      start = Clock::now();
      skipped = batches;
    }
  }
  double rate = (batches - skipped) / since(start);
  belt.close();
  reader.join();
  std::filesystem::remove_all(folder);
  std::printf("loss %.4f\nrate %.3f batches/s\n", loss, rate);
}
