// A plain reader with threads, a queue and a consumer, and a planted limit; knows nothing of
// headrace.
//
// usage: real_reader LIMIT [--readers N] [--seconds S] [--dir DIR]
// LIMIT: readers (CPU of the readers), consumer (CPU of the consumer), storage (readers read past
// the page cache), lock (readers hold one lock most of the time). Prints one line of JSON.
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kBlockBytes = 4096, kFileBlocks = 16384, kCapacity = 8;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// CPU time, not wall time: the same work however busy the machine is.
void Burn(double seconds) {
  timespec begin, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  volatile uint32_t x = 1;
  do {
    for (int i = 0; i < 2000; ++i) x = x * 1103515245u + 12345u;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec - begin.tv_sec) +
               static_cast<double>(now.tv_nsec - begin.tv_nsec) * 1e-9 <
           seconds);
}

struct Queue {
  std::mutex mutex;
  std::condition_variable room, item;
  std::deque<int> items;
  bool closed = false;

  bool Put(int value) {
    std::unique_lock lock(mutex);
    room.wait(lock, [&] { return closed || items.size() < kCapacity; });
    if (closed) return false;
    items.push_back(value);
    item.notify_one();
    return true;
  }
  int Get() {
    std::unique_lock lock(mutex);
    item.wait(lock, [&] { return !items.empty(); });
    const int value = items.front();
    items.pop_front();
    room.notify_one();
    return value;
  }
  void Close() {
    std::unique_lock lock(mutex);
    closed = true;
    room.notify_all();
  }
};

struct Costs {
  double item_cpu_s = 0, step_cpu_s = 0, held_s = 0;
  int blocks = 0;
};

class Reader {
 public:
  Reader(std::string path, const Costs& costs, Queue* queue, std::mutex* table)
      : path_(std::move(path)), costs_(costs), queue_(queue), table_(table) {}

  void Run(int index) {
    prctl(PR_SET_NAME, ("reader-" + std::to_string(index)).c_str());
    int fd = open(path_.c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0) fd = open(path_.c_str(), O_RDONLY);
    void* buffer = nullptr;
    if (fd < 0 || posix_memalign(&buffer, kBlockBytes, kBlockBytes) != 0) return;
    unsigned seed = static_cast<unsigned>(index) + 1;
    do {
      for (int i = 0; i < costs_.blocks; ++i) {
        const auto block = static_cast<off_t>(static_cast<size_t>(rand_r(&seed)) % kFileBlocks);
        if (pread(fd, buffer, kBlockBytes, block * static_cast<off_t>(kBlockBytes)) < 0) break;
      }
      if (costs_.held_s > 0) {
        const std::lock_guard hold(*table_);
        usleep(static_cast<useconds_t>(costs_.held_s * 1e6));
      }
      Burn(costs_.item_cpu_s);
    } while (queue_->Put(index));
    free(buffer);
    close(fd);
  }

 private:
  std::string path_;
  Costs costs_;
  Queue* queue_;
  std::mutex* table_;
};

bool MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (fd < 0) return false;
  std::vector<char> chunk(1 << 20);
  bool good = true;
  for (size_t done = 0; done < kBlockBytes * kFileBlocks && good; done += chunk.size()) {
    for (size_t i = 0; i < chunk.size(); i += 64) chunk[i] = static_cast<char>(done + i);
    good = write(fd, chunk.data(), chunk.size()) == static_cast<ssize_t>(chunk.size());
  }
  good = good && fsync(fd) == 0;
  close(fd);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string limit = argc > 1 ? argv[1] : "";
  int readers = 2;
  double seconds = 6;
  std::string folder = ".";
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--readers")) readers = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::atof(argv[i + 1]);
    if (!std::strcmp(argv[i], "--dir")) folder = argv[i + 1];
  }
  Costs costs;
  if (limit == "readers") {
    costs = {0.006, 0.0005, 0, 0};
  } else if (limit == "consumer") {
    costs = {0.0005, 0.006, 0, 0};
  } else if (limit == "storage") {
    costs = {0.0001, 0.0005, 0, 96};
  } else if (limit == "lock") {
    costs = {0.0001, 0.0005, 0.004, 0};
  } else {
    std::fprintf(stderr, "usage: real_reader readers|consumer|storage|lock [--readers N]\n");
    return 2;
  }
  const std::string path = folder + "/real_reader-" + std::to_string(getpid()) + ".bin";
  if (!MakeFile(path)) {
    std::perror(path.c_str());
    return 1;
  }
  Queue queue;
  std::mutex table;
  std::vector<std::thread> threads;
  for (int i = 0; i < readers; ++i) {
    threads.emplace_back([&, i] { Reader(path, costs, &queue, &table).Run(i); });
  }
  const auto begin = Clock::now();
  double waited = 0;
  long steps = 0;
  while (Since(begin) < seconds) {
    const auto asked = Clock::now();
    queue.Get();
    waited += Since(asked);
    Burn(costs.step_cpu_s);
    ++steps;
  }
  const double lasted = Since(begin);
  queue.Close();
  for (std::thread& thread : threads) thread.join();
  unlink(path.c_str());
  std::printf("{\"batches\": %ld, \"seconds\": %.3f, \"stall_ratio\": %.3f}\n", steps, lasted,
              waited / lasted);
  return 0;
}
