// A course: values over time at equal distances, made of the intervals of a store, which are of any
// length.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headrace::dashboards {

// The oldest first; nothing where none is known.
using TimeCourse = std::vector<std::optional<double>>;

// The newest known value.
std::optional<double> LastOf(const TimeCourse& course);

// Adds up parts and wholes of intervals; a value of the course is their ratio in its part of the
// time.
class CourseMaker {
 public:
  static constexpr size_t kValues = 120;

  // Of the time from `from_ns` to `to_ns`.
  CourseMaker(int64_t from_ns, int64_t to_ns);

  // Of an interval of which `part` of `whole` is so; both are spread evenly over it.
  void Add(int64_t start_ns, int64_t duration_ns, double part, double whole);
  void AddPart(int64_t start_ns, int64_t duration_ns, double part);

  // kValues values, less those before the first that is known.
  TimeCourse Finish() const;

 private:
  void Spread(int64_t start_ns, int64_t duration_ns, double value, std::vector<double>* sums) const;

  double from_ns_, value_ns_;
  std::vector<double> parts_, wholes_;
};

}  // namespace headrace::dashboards
