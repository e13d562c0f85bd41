#include "reader/batch/recycle.h"

#include <map>
#include <mutex>
#include <utility>

namespace headrace::reader {
namespace {

template <typename T>
class VectorPool {
 public:
  // Best fit; a vector of more than twice the wanted room is left for a larger need. Empty when
  // none fits.
  std::vector<T> Take(size_t size) {
    std::lock_guard lock(mutex_);
    const auto place = idle_.lower_bound(size);
    if (place == idle_.end() || place->first > 2 * size + kMinRecycledBytes) return {};
    std::vector<T> vector = std::move(place->second);
    idle_bytes_ -= place->first * sizeof(T);
    idle_.erase(place);
    return vector;
  }

  void Put(std::vector<T>&& vector) {
    const size_t bytes = vector.capacity() * sizeof(T);
    std::lock_guard lock(mutex_);
    if (idle_bytes_ + bytes > kMaxIdleBytes) return;
    idle_bytes_ += bytes;
    idle_.emplace(vector.capacity(), std::move(vector));
  }

 private:
  std::mutex mutex_;
  std::multimap<size_t, std::vector<T>> idle_;  // by capacity
  size_t idle_bytes_ = 0;
};

// Never destroyed: batches of detached threads may outlive main.
template <typename T>
VectorPool<T>& Pool() {
  static auto* pool = new VectorPool<T>();
  return *pool;
}

}  // namespace

template <typename T>
std::vector<T> TakeVector(size_t size) {
  if (size * sizeof(T) < kMinRecycledBytes) return std::vector<T>(size);
  std::vector<T> vector = Pool<T>().Take(size);
  if (vector.capacity() < size) return std::vector<T>(size);
  // The old elements stay, so only growth past the old size is zeroed.
  vector.resize(size);
  return vector;
}

template <typename T>
void RecycleVector(std::vector<T>&& vector) {
  if (vector.capacity() * sizeof(T) >= kMinRecycledBytes) Pool<T>().Put(std::move(vector));
}

template std::vector<int64_t> TakeVector(size_t);
template std::vector<uint32_t> TakeVector(size_t);
template std::vector<float> TakeVector(size_t);
template void RecycleVector(std::vector<int64_t>&&);
template void RecycleVector(std::vector<uint32_t>&&);
template void RecycleVector(std::vector<float>&&);

}  // namespace headrace::reader
