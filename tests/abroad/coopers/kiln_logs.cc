// Learns the firing curve of brick kilns: reader threads parse thermocouple logs into batches, a
// bounded queue hands them to the trainer, which keeps its weights in a file. --fix: a checkpoint
// every 200 batches, not after each.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>
constexpr int kProbes = 16, kHidden = 2048, kRows = 8;
struct Batch {
  std::vector<float> temperature, curve;
};

struct BatchQueue {
  std::mutex mutex;
  std::condition_variable ready, room;
  std::deque<Batch> items;
  bool closed = false;
  bool put(Batch b) {
    std::unique_lock lock(mutex);
    room.wait(lock, [&] { return closed || items.size() < 8; });
    items.push_back(std::move(b)), ready.notify_one();
    return !closed;
  }
  Batch take() {
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return !items.empty(); });
    Batch b = std::move(items.front());
    items.pop_front(), room.notify_one();
    return b;
  }
};

void write_log(const std::filesystem::path& path) {
  std::ofstream log(path);
  for (int row = 0, sum = 0; row < 20000; ++row, sum = 0) {
    for (int p = 0, t; p < kProbes; ++p) log << (t = 300 + std::rand() % 800) << ' ', sum += t;
    log << sum / 1000.0 / kProbes << '\n';
  }
}

void read_logs(const std::filesystem::path& log, BatchQueue& queue) {
  for (bool open = true; open;) {
    std::ifstream in(log);
    Batch b;
    for (std::string line; open && std::getline(in, line);) {
      char* at = line.data();
      for (int p = 0; p < kProbes; ++p) b.temperature.push_back(std::strtof(at, &at) / 1000);
      b.curve.push_back(std::strtof(at, &at));
      if (b.curve.size() == kRows) open = queue.put(std::exchange(b, {}));
    }
  }
}

struct Network {  // random features, the upper layer is trained
  std::vector<float> in = std::vector<float>(kProbes * kHidden), out = std::vector<float>(kHidden);
  Network() {
    for (float& w : in) w = std::rand() * 0.1f / RAND_MAX - 0.05f;
  }
  float step(const Batch& b) {
    float loss = 0, hidden[kHidden];
    for (int r = 0; r < kRows; ++r) {
      float error = -b.curve[r];
      for (int h = 0; h < kHidden; ++h) {
        hidden[h] = 0;
        for (int p = 0; p < kProbes; ++p)
          hidden[h] += in[h * kProbes + p] * b.temperature[r * kProbes + p];
        error += (hidden[h] = std::max(hidden[h], 0.f)) * out[h];
      }
      for (int h = 0; h < kHidden; ++h) out[h] -= 1e-3f * error * hidden[h];
      loss += error * error / kRows;
    }
    return loss;
  }
  void save(const std::string& path) const {
    const int fd = open((path + ".new").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    for (auto* part : {&in, &out})
      if (write(fd, part->data(), part->size() * sizeof(float)) < 0) std::abort();
    fsync(fd), close(fd);
    std::filesystem::rename(path + ".new", path);
  }
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
  double seconds = 6, rate = 0;
  long every = 1, batches = 0, skipped = -1;
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc)
      seconds = std::atof(argv[++i]);
    else if (!std::strcmp(argv[i], "--fix"))
      every = 200;
  const std::filesystem::path folder = mkdtemp(std::string("/tmp/kiln_XXXXXX").data());
  write_log(folder / "kiln.log");
  BatchQueue queue;
  std::thread readers[2];
  for (auto& reader : readers)
    reader = std::thread(read_logs, folder / "kiln.log", std::ref(queue));
  Network network;
  double first = now(), since = first;
  for (; now() - first < seconds; rate = (batches - skipped) / (now() - since)) {
    network.step(queue.take());
    if (++batches % every == 0) network.save(folder / "weights.bin");
    if (skipped < 0 && now() - first >= std::min(1.0, seconds / 5))
      skipped = batches, since = now();
  }
  queue.mutex.lock(), queue.closed = true, queue.mutex.unlock(), queue.room.notify_all();
  for (auto& reader : readers) reader.join();
  std::filesystem::remove_all(folder);
  std::printf("rate %.3f batches/s\n", rate);
}
