// Calibration: the ceilings of this machine, measured in a few seconds: memory bandwidth, storage
// by request size and depth, decompression, hash and decryption rates, clocks. The roofline
// compares runs with them. Loads the machine while it lasts.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headrace::probes {

// One ceiling. Rates and times are the best of the repetitions, with their range: the machine can
// do that much, and slower repetitions were disturbed by other work.
struct Ceiling {
  std::string metric;   // ends in its unit: "memory_read_bytes_per_s"
  std::string unit;     // "B/s", "ns", "ratio", "Hz"
  std::string subject;  // codec, hash, cipher, clock; "" memory, storage
  std::optional<int64_t> threads_count, size_bytes, depth_count;
  double value = 0, minimum = 0, maximum = 0;
  int64_t repetitions_count = 0;
  std::string note;  // how it was measured, where that is not the metric's own meaning
};

// A part that could not be measured, and why.
struct CalibrationSkip {
  std::string part, reason, fix;
};

struct Calibration {
  std::vector<Ceiling> ceilings;
  std::vector<CalibrationSkip> skips;
};

struct CalibrationOptions {
  std::string folder = ".";         // storage to measure: a file is made and removed there
  int64_t file_bytes = 256 << 20;   // its greatest size
  int64_t memory_bytes = 0;         // working set; 0: four times the last-level cache
  int64_t part_ns = 1'200'000'000;  // greatest time for one point; ten times less in tests
  int max_threads = 0;              // 0: as many as this process may use cores
  std::function<void(double fraction, const std::string& part)> progress;
  std::function<bool()> interrupted;  // called between points; true ends the calibration
};

// Measures everything, in about 15 s on two cores with the defaults. Never throws for what is
// absent or refused: that is a skip.
Calibration Calibrate(const CalibrationOptions& options);

// The parts. Each adds its ceilings and skips.
void CalibrateMemory(const CalibrationOptions& options, Calibration* out);
void CalibrateStorage(const CalibrationOptions& options, Calibration* out);
void CalibrateCodecs(const CalibrationOptions& options, Calibration* out);
void CalibrateClock(const CalibrationOptions& options, Calibration* out);

// Repeats `measure`, which returns one figure, at least 3 and at most 15 times, until `limit_ns`
// is spent; best is the greatest for rates, the least for times.
void Repeat(Ceiling ceiling, bool greatest_is_best, int64_t limit_ns,
            const std::function<double()>& measure, Calibration* out);

// Drift of the time-stamp counter against CLOCK_MONOTONIC between two looks; nothing where there is
// no such counter.
class CounterDrift {
 public:
  CounterDrift();  // first look, about 0.2 s
  void Finish(Calibration* out) const;

 private:
  std::optional<double> hertz_;
  int64_t begin_ns_ = 0;
  uint64_t begin_ticks_ = 0;
};

}  // namespace headrace::probes
