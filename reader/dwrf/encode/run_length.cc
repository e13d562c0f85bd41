#include "reader/dwrf/encode/run_length.h"

#include <bit>
#include <cstring>

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kMinRun = 3, kMaxRun = 130, kMaxLiterals = 128;

inline uint8_t* PutVarint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

inline uint8_t* PutInteger(uint8_t* out, uint64_t value, IntegerForm form) {
  if (form.width == 0)
    return PutVarint(out, form.is_signed ? ZigZag(static_cast<int64_t>(value)) : value);
  std::memcpy(out, &value, 8);  // little-endian; room for 8 is always reserved
  return out + form.width;
}

// Follows the runs as they are written and notes where the cuts fall.
class MarkRecorder {
 public:
  MarkRecorder(std::span<const uint64_t> cuts, size_t base, std::vector<Mark>* marks)
      : cuts_(cuts), base_(base), marks_(marks) {}
  // A run or literal group of values [first, first + count) begins at byte `at` of the sink.
  void Group(uint64_t first, uint64_t count, size_t at) {
    for (; next_ < cuts_.size() && cuts_[next_] < first + count; ++next_)
      marks_->push_back({at - base_, static_cast<uint32_t>(cuts_[next_] - first), 0});
  }
  void End(size_t at) {
    for (; next_ < cuts_.size(); ++next_) marks_->push_back({at - base_, 0, 0});
  }

 private:
  std::span<const uint64_t> cuts_;
  size_t base_;
  std::vector<Mark>* marks_;
  size_t next_ = 0;
};

// Splits n values into runs and groups of literals. A run inside literals must be longer, since
// leaving and re-entering the literals costs a control byte.
template <class RunLength, class PutRun, class PutLiterals>
void SplitRuns(size_t n, size_t min_run_in_literals, RunLength run_length, PutRun put_run,
               PutLiterals put_literals) {
  size_t literals = 0;  // first value not yet written
  for (size_t i = 0; i < n;) {
    const size_t length = run_length(i);
    if (length >= (i == literals ? kMinRun : min_run_in_literals)) {
      if (literals < i) put_literals(literals, i - literals);
      put_run(i, length);
      i += length;
      literals = i;
      continue;
    }
    i += length > 2 ? length - 1 : 1;  // no longer run starts among the values of a short one
    for (; i - literals >= kMaxLiterals; literals += kMaxLiterals)
      put_literals(literals, kMaxLiterals);
  }
  if (literals < n) put_literals(literals, n - literals);
}

template <class T>
bool Step(T from, T to, int64_t* delta) {
  const uint64_t difference = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  *delta = static_cast<int64_t>(difference);
  // The second condition refuses a step that wraps around.
  return *delta >= -128 && *delta <= 127 && (*delta >= 0) == (to >= from);
}

template <class T>
size_t IntegerRunLength(std::span<const T> values, size_t i) {
  const size_t limit = values.size() - i < kMaxRun ? values.size() - i : kMaxRun;
  int64_t delta, next;
  if (limit < 2 || !Step(values[i], values[i + 1], &delta)) return 1;
  size_t length = 2;
  while (length < limit && Step(values[i + length - 1], values[i + length], &next) && next == delta)
    ++length;
  return length;
}

template <class T>
void EncodeRuns(std::span<const T> values, IntegerForm form, std::span<const uint64_t> cuts,
                ByteSink* sink, std::vector<Mark>* marks) {
  MarkRecorder recorder(cuts, sink->size(), marks);
  SplitRuns(
      values.size(), 5, [&](size_t i) { return IntegerRunLength(values, i); },
      [&](size_t first, size_t count) {
        recorder.Group(first, count, sink->size());
        uint8_t* out = sink->Reserve(16);
        *out++ = static_cast<uint8_t>(count - kMinRun);
        *out++ = static_cast<uint8_t>(values[first + 1] - values[first]);
        sink->Finish(PutInteger(out, static_cast<uint64_t>(values[first]), form));
      },
      [&](size_t first, size_t count) {
        recorder.Group(first, count, sink->size());
        uint8_t* out = sink->Reserve(16 + count * 10);
        *out++ = static_cast<uint8_t>(256 - count);
        for (size_t i = first; i < first + count; ++i)
          out = PutInteger(out, static_cast<uint64_t>(values[i]), form);
        sink->Finish(out);
      });
  recorder.End(sink->size());
}

uint8_t ReverseBits(uint8_t b) {
  b = static_cast<uint8_t>((b & 0xf0) >> 4 | (b & 0x0f) << 4);
  b = static_cast<uint8_t>((b & 0xcc) >> 2 | (b & 0x33) << 2);
  return static_cast<uint8_t>((b & 0xaa) >> 1 | (b & 0x55) << 1);
}

}  // namespace

void EncodeByteRuns(std::span<const uint8_t> values, std::span<const uint64_t> cuts, ByteSink* sink,
                    std::vector<Mark>* marks) {
  MarkRecorder recorder(cuts, sink->size(), marks);
  const auto run_length = [&](size_t i) {
    const size_t limit = values.size() - i < kMaxRun ? values.size() - i : kMaxRun;
    size_t length = 1;
    while (length < limit && values[i + length] == values[i]) ++length;
    return length;
  };
  SplitRuns(
      values.size(), 4, run_length,
      [&](size_t first, size_t count) {
        recorder.Group(first, count, sink->size());
        uint8_t* out = sink->Reserve(2);
        *out++ = static_cast<uint8_t>(count - kMinRun);
        *out++ = values[first];
        sink->Finish(out);
      },
      [&](size_t first, size_t count) {
        recorder.Group(first, count, sink->size());
        uint8_t* out = sink->Reserve(1 + count);
        *out++ = static_cast<uint8_t>(256 - count);
        std::memcpy(out, values.data() + first, count);
        sink->Finish(out + count);
      });
  recorder.End(sink->size());
}

void EncodeBits(const BitBuffer& values, std::span<const uint64_t> cuts, ByteSink* sink,
                std::vector<Mark>* marks) {
  std::vector<uint8_t> bytes((values.size() + 7) / 8);
  if (!bytes.empty()) std::memcpy(bytes.data(), values.words().data(), bytes.size());
  for (uint8_t& byte : bytes) byte = ReverseBits(byte);
  std::vector<uint64_t> byte_cuts(cuts.begin(), cuts.end());
  for (uint64_t& cut : byte_cuts) cut /= 8;
  const size_t first_mark = marks->size();
  EncodeByteRuns(bytes, byte_cuts, sink, marks);
  for (size_t i = 0; i < cuts.size(); ++i)
    (*marks)[first_mark + i].bits = static_cast<uint32_t>(cuts[i] % 8);
}

void EncodeIntegerRuns(std::span<const uint32_t> values, IntegerForm form,
                       std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks) {
  EncodeRuns(values, form, cuts, sink, marks);
}

void EncodeIntegerRuns(std::span<const int64_t> values, IntegerForm form,
                       std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks) {
  if (form.is_signed) return EncodeRuns(values, form, cuts, sink, marks);
  EncodeRuns(
      std::span<const uint64_t>(reinterpret_cast<const uint64_t*>(values.data()), values.size()),
      form, cuts, sink, marks);
}

void EncodeIntegers(std::span<const int64_t> values, IntegerForm form,
                    std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks) {
  constexpr size_t kBlock = 4096;
  const size_t base = sink->size();
  size_t next_cut = 0;
  for (size_t i = 0; i < values.size();) {
    size_t end = i + kBlock < values.size() ? i + kBlock : values.size();
    for (; next_cut < cuts.size() && cuts[next_cut] == i; ++next_cut)
      marks->push_back({sink->size() - base, 0, 0});
    if (next_cut < cuts.size() && cuts[next_cut] < end) end = cuts[next_cut];
    uint8_t* out = sink->Reserve((end - i) * 10 + 8);
    for (; i < end; ++i) out = PutInteger(out, static_cast<uint64_t>(values[i]), form);
    sink->Finish(out);
  }
  for (; next_cut < cuts.size(); ++next_cut) marks->push_back({sink->size() - base, 0, 0});
}

}  // namespace headrace::reader::dwrf
