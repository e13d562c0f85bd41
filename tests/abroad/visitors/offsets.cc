// Trains on a stream of events and writes down, after each batch, how far it has come, so that a
// restart loses nothing: pwrite and fdatasync.
// --fix: after every 100th batch.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Batch {
  std::uint64_t end = 0;
  std::vector<float> rows;
};

class Stream {
 public:
  Stream() : thread([this] { read(); }) {}

  ~Stream() {
    {
      std::lock_guard lock(mutex);
      closed = true;
    }
    room.notify_all();
    thread.join();
  }

  Batch next() {
    std::unique_lock lock(mutex);
    some.wait(lock, [this] { return !ready.empty(); });
    Batch batch = std::move(ready.front());
    ready.pop_front();
    room.notify_one();
    return batch;
  }

 private:
  void read() {
    std::minstd_rand draw(1);
    for (std::uint64_t end = 64;; end += 64) {
      Batch batch{end, std::vector<float>(64 * 32)};
      for (float& value : batch.rows) {
        value = static_cast<float>(draw()) / 2147483648.0f;
      }
      std::unique_lock lock(mutex);
      room.wait(lock, [this] { return closed || ready.size() < 8; });
      if (closed) {
        return;
      }
      ready.push_back(std::move(batch));
      some.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable some, room;
  std::deque<Batch> ready;
  bool closed = false;
  std::thread thread;
};

class Offsets {
 public:
  explicit Offsets(int interval) : interval(interval) {
    const char* base = std::getenv("TMPDIR");
    path = std::string(base != nullptr ? base : "/tmp") + "/offsets-XXXXXX";
    file = ::mkstemp(path.data());
    if (file < 0) {
      throw std::runtime_error("mkstemp");
    }
  }

  ~Offsets() {
    ::close(file);
    ::unlink(path.c_str());
  }

  void commit(std::uint64_t offset) {
    if (++calls % interval != 0) {
      return;
    }
    char line[4096] = {};
    std::snprintf(line, sizeof line, "%llu\n", static_cast<unsigned long long>(offset));
    if (::pwrite(file, line, sizeof line, written) != sizeof line || ::fdatasync(file) != 0) {
      throw std::runtime_error("commit");
    }
    written += sizeof line;
  }

 private:
  int interval, file;
  std::string path;
  long calls = 0, written = 0;
};

double train(const Batch& batch, std::vector<float>& weights) {
  double loss = 0;
  for (int pass = 0; pass < 4; ++pass) {
    for (std::size_t at = 0; at < batch.rows.size(); at += 32) {
      float dot = 0;
      for (int i = 0; i < 32; ++i) {
        dot += batch.rows[at + i] * weights[i];
      }
      const float error = std::tanh(dot) - 0.3f;
      loss += error * error;
      for (int i = 0; i < 32; ++i) {
        weights[i] -= 1e-4f * error * batch.rows[at + i];
      }
    }
  }
  return loss;
}

int main(int count, char** words) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--fix") == 0) {
      fix = true;
    } else if (std::strcmp(words[i], "--seconds") == 0 && i + 1 < count) {
      seconds = std::atof(words[++i]);
    }
  }
  Stream stream;
  Offsets offsets(fix ? 100 : 1);
  std::vector<float> weights(32);
  const auto begin = std::chrono::steady_clock::now();
  double passed = 0, loss = 0;
  long batches = 0;
  while (passed < seconds) {
    const Batch batch = stream.next();
    loss += train(batch, weights);
    offsets.commit(batch.end);
    ++batches;
    passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::fprintf(stderr, "loss %g\n", loss / static_cast<double>(batches));
  std::printf("rate %.3f batches/s\n", static_cast<double>(batches) / passed);
}
