// Four threads read a column of varints from memory and hand blocks to the main thread.
// usage: column_reader --seconds N [--fix]
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

struct Column {
  std::mutex mutex;
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> starts;
  std::size_t next = 0;
};

struct Blocks {
  std::mutex mutex;
  std::condition_variable filled, room;
  std::deque<std::vector<std::int64_t>> ready;
  bool stop = false;
};

static std::vector<std::int64_t> decode(const std::uint8_t* at, const std::uint8_t* end) {
  std::vector<std::int64_t> values;
  std::int64_t sum = 0;
  while (at < end) {
    std::uint64_t raw = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t byte = *at++;
      raw |= std::uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) break;
    }
    sum += std::int64_t(raw >> 1) ^ -std::int64_t(raw & 1);
    values.push_back(sum);
  }
  return values;
}

static std::vector<std::int64_t> next_block(Column& column, bool narrow) {
  std::unique_lock<std::mutex> lock(column.mutex);
  const std::size_t block = column.next++ % (column.starts.size() - 1);
  const std::uint8_t* begin = column.bytes.data() + column.starts[block];
  const std::uint8_t* end = column.bytes.data() + column.starts[block + 1];
  if (narrow) lock.unlock();
  return decode(begin, end);
}

static void read_blocks(Column& column, Blocks& blocks, bool narrow) {
  for (;;) {
    std::vector<std::int64_t> values = next_block(column, narrow);
    std::int64_t low = INT64_MAX;
    for (std::int64_t value : values) low = value < low ? value : low;
    for (std::int64_t& value : values) value -= low;
    std::unique_lock<std::mutex> lock(blocks.mutex);
    blocks.room.wait(lock, [&] { return blocks.ready.size() < 8 || blocks.stop; });
    if (blocks.stop) return;
    blocks.ready.push_back(std::move(values));
    blocks.filled.notify_one();
  }
}

int main(int argc, char** argv) {
  double seconds = 6;
  bool narrow = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc)
      seconds = std::atof(argv[++i]);
    else if (!std::strcmp(argv[i], "--fix"))
      narrow = true;
  }
  Column column;
  std::uint64_t state = 1;
  for (int block = 0; block < 16; ++block) {
    column.starts.push_back(column.bytes.size());
    for (int i = 0; i < 400000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      for (std::uint64_t raw = state >> (40 + (state >> 60));; raw >>= 7) {
        column.bytes.push_back(std::uint8_t(raw & 0x7f) | (raw > 0x7f ? 0x80 : 0));
        if (raw <= 0x7f) break;
      }
    }
  }
  column.starts.push_back(column.bytes.size());
  Blocks blocks;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(read_blocks, std::ref(column), std::ref(blocks), narrow);
  const Clock::time_point start = Clock::now();
  Clock::time_point base{}, now;
  const double warm = seconds * 0.25 < 1 ? seconds * 0.25 : 1;
  long count = 0, base_count = -1;
  std::int64_t total = 0;
  do {
    std::vector<std::int64_t> values;
    {
      std::unique_lock<std::mutex> lock(blocks.mutex);
      blocks.filled.wait(lock, [&] { return !blocks.ready.empty(); });
      values = std::move(blocks.ready.front());
      blocks.ready.pop_front();
      blocks.room.notify_one();
    }
    for (std::size_t i = 0; i < values.size(); i += 8) total += values[i];
    ++count;
    now = Clock::now();
    if (base_count < 0 && std::chrono::duration<double>(now - start).count() >= warm)
      base = now, base_count = count;
  } while (std::chrono::duration<double>(now - start).count() < seconds);
  {
    std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.stop = true;
    blocks.room.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("sum %lld\nrate %.3f batches/s\n", static_cast<long long>(total),
              double(count - base_count) / std::chrono::duration<double>(now - base).count());
}
