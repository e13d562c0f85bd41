#include "probes/calibration/calibration.h"

#include <algorithm>

#include "base/clock.h"

namespace headrace::probes {

void Repeat(Ceiling ceiling, bool greatest_is_best, int64_t limit_ns,
            const std::function<double()>& measure, Calibration* out) {
  constexpr int64_t kLeast = 3, kMost = 15;
  const int64_t begin = MonotonicNs();
  for (int64_t i = 0; i < kMost && (i < kLeast || MonotonicNs() - begin < limit_ns); i++) {
    const double figure = measure();
    ceiling.minimum = i == 0 ? figure : std::min(ceiling.minimum, figure);
    ceiling.maximum = i == 0 ? figure : std::max(ceiling.maximum, figure);
    ceiling.repetitions_count = i + 1;
  }
  ceiling.value = greatest_is_best ? ceiling.maximum : ceiling.minimum;
  out->ceilings.push_back(std::move(ceiling));
}

Calibration Calibrate(const CalibrationOptions& options) {
  Calibration out;
  const CounterDrift drift;
  const auto part = [&](double from, double to, auto calibrate) {
    CalibrationOptions own = options;
    own.progress = [&](double fraction, const std::string& what) {
      if (options.progress) options.progress(from + (to - from) * fraction, what);
    };
    own.interrupted = [&] { return options.interrupted && options.interrupted(); };
    if (!own.interrupted()) calibrate(own, &out);
  };
  part(0.02, 0.40, CalibrateMemory);
  part(0.40, 0.80, CalibrateStorage);
  part(0.80, 0.97, CalibrateCodecs);
  part(0.97, 1.00, CalibrateClock);
  drift.Finish(&out);
  return out;
}

}  // namespace headrace::probes
