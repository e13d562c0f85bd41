#include "dashboards/terminal/time_course.h"

#include <algorithm>
#include <cmath>

namespace headrace::dashboards {

std::optional<double> LastOf(const TimeCourse& course) {
  for (size_t i = course.size(); i-- > 0;) {
    if (course[i]) return course[i];
  }
  return std::nullopt;
}

CourseMaker::CourseMaker(int64_t from_ns, int64_t to_ns)
    : from_ns_(static_cast<double>(from_ns)),
      value_ns_(std::max(1.0, static_cast<double>(to_ns - from_ns) / kValues)),
      parts_(kValues),
      wholes_(kValues) {}

void CourseMaker::Add(int64_t start_ns, int64_t duration_ns, double part, double whole) {
  Spread(start_ns, duration_ns, part, &parts_);
  Spread(start_ns, duration_ns, whole, &wholes_);
}

void CourseMaker::AddPart(int64_t start_ns, int64_t duration_ns, double part) {
  Spread(start_ns, duration_ns, part, &parts_);
}

void CourseMaker::Spread(int64_t start_ns, int64_t duration_ns, double value,
                         std::vector<double>* sums) const {
  if (duration_ns <= 0) return;
  const double begin = (static_cast<double>(start_ns) - from_ns_) / value_ns_;
  const double end = begin + static_cast<double>(duration_ns) / value_ns_;
  constexpr double kLast = kValues - 1;
  const auto first = static_cast<size_t>(std::clamp(std::floor(begin), 0.0, kLast));
  const auto last = static_cast<size_t>(std::clamp(std::ceil(end) - 1, 0.0, kLast));
  for (size_t i = first; i <= last; ++i) {
    const double here =
        std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i));
    if (here > 0) (*sums)[i] += value * here / (end - begin);
  }
}

TimeCourse CourseMaker::Finish() const {
  TimeCourse course(kValues);
  for (size_t i = 0; i < kValues; ++i) {
    if (wholes_[i] > 0) course[i] = parts_[i] / wholes_[i];
  }
  const auto known = std::find_if(course.begin(), course.end(),
                                  [](const auto& value) { return value.has_value(); });
  course.erase(course.begin(), known);
  return course;
}

}  // namespace headrace::dashboards
