// Array<T>: the values of a column or tensor, n of a plain type T. Used as a std::vector, with two
// differences that batches need:
//
//   - growing does not zero: resize(n) leaves new elements unspecified, resize(n, 0) sets them;
//   - it may be borrowed: a part of a larger piece of memory (a slab, reader/batch/slab.h) that it
//     keeps alive. Elements of a borrowed array may be written in place; growing past its end makes
//     it an owned one by copying once. Arrays borrowed from one slab must not overlap.
//
// Owned memory comes from BlockPool and goes back to it. Moves in constant time; copies only by
// Clone(). A moved-from array is empty.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/block_pool.h"

namespace headrace::reader {

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using reference = T&;
  using const_reference = const T&;
  using size_type = size_t;
  using difference_type = ptrdiff_t;

  Array() = default;
  explicit Array(size_t size) { resize(size); }  // unspecified values
  Array(size_t size, T value) { resize(size, value); }
  Array(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  Array(const std::vector<T>& values) { assign(values.begin(), values.end()); }
  Array(Array&& other) noexcept { Swap(&other); }
  Array& operator=(Array&& other) noexcept {
    if (this != &other) {
      Release();
      Swap(&other);
    }
    return *this;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { Release(); }

  // The elements `part`, which live as long as `keep`.
  static Array Borrow(std::span<T> part, std::shared_ptr<const void> keep) {
    Array array;
    array.data_ = part.data();
    array.size_ = array.capacity_ = part.size();
    array.keep_ = std::move(keep);
    return array;
  }
  bool borrowed() const { return keep_ != nullptr; }
  // What a borrowed array keeps alive, else null.
  const void* owner() const { return keep_.get(); }

  Array Clone() const {
    Array copy(size_);
    if (size_ > 0) std::memcpy(copy.data_, data_, size_ * sizeof(T));
    return copy;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(size_t capacity) {
    if (capacity > capacity_) Move(capacity);
  }
  // New elements are unspecified.
  void resize(size_t size) {
    if (size > capacity_) Move(Grown(size));
#if defined(__SANITIZE_ADDRESS__)
    // What relies on zeros shows.
    if (size > size_)
      std::memset(static_cast<void*>(data_ + size_), 0xa5, (size - size_) * sizeof(T));
#endif
    size_ = size;
  }
  void resize(size_t size, T value) {
    const size_t old = size_;
    resize(size);
    if (size > old) std::fill(data_ + old, data_ + size, value);
  }
  void push_back(T value) {
    if (size_ == capacity_) Move(Grown(size_ + 1));
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void assign(size_t size, T value) {
    clear();
    resize(size, value);
  }
  template <typename Iterator>
  requires(!std::is_integral_v<Iterator>) void assign(Iterator first, Iterator last) {
    clear();
    insert(end(), first, last);
  }
  // [first, last) is not of this array.
  template <typename Iterator>
  void insert(const T* place, Iterator first, Iterator last) {
    const size_t before = static_cast<size_t>(place - data_), after = size_ - before;
    const auto count = static_cast<size_t>(std::distance(first, last));
    if (count == 0) return;
    resize(size_ + count);
    if (after > 0) std::memmove(data_ + before + count, data_ + before, after * sizeof(T));
    std::copy(first, last, data_ + before);
  }
  void erase(const T* first, const T* last) {
    T* const to = data_ + (first - data_);
    if (last != end()) std::memmove(to, last, static_cast<size_t>(end() - last) * sizeof(T));
    size_ -= static_cast<size_t>(last - first);
  }

  friend bool operator==(const Array& a, const Array& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Array& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  size_t Grown(size_t size) const { return std::max(size, capacity_ + capacity_ / 2); }
  // To owned memory for `capacity` elements, at least size_.
  void Move(size_t capacity) {
    const Block block = BlockPool::Get().Take(capacity * sizeof(T));
    if (size_ > 0) std::memcpy(block.data, data_, size_ * sizeof(T));
    const size_t size = size_;
    Release();
    data_ = static_cast<T*>(block.data);
    size_ = size;
    capacity_ = block.bytes / sizeof(T);
    block_bytes_ = block.bytes;
  }
  void Release() {
    if (block_bytes_ > 0) BlockPool::Get().Give({data_, block_bytes_});
    keep_.reset();
    data_ = nullptr;
    size_ = capacity_ = block_bytes_ = 0;
  }
  void Swap(Array* other) {
    std::swap(data_, other->data_);
    std::swap(size_, other->size_);
    std::swap(capacity_, other->capacity_);
    std::swap(block_bytes_, other->block_bytes_);
    std::swap(keep_, other->keep_);
  }

  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
  size_t block_bytes_ = 0;            // of owned memory
  std::shared_ptr<const void> keep_;  // of borrowed memory
};

}  // namespace headrace::reader
