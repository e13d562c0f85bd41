#include "analysis/statistics/distributions.h"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

#include "base/infinite.h"

namespace headrace::analysis {
namespace {

namespace math = boost::math;
// Values instead of exceptions: the callers' arguments are checked here, and what remains is an
// overflow to infinity or an underflow to 0, both right.
using Quiet =
    math::policies::policy<math::policies::domain_error<math::policies::ignore_error>,
                           math::policies::overflow_error<math::policies::ignore_error>,
                           math::policies::underflow_error<math::policies::ignore_error>,
                           math::policies::evaluation_error<math::policies::ignore_error>>;

}  // namespace

double NormalCdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

double NormalQuantile(double p) {
  if (p <= 0) return -kInfinite;
  if (p >= 1) return kInfinite;
  return math::quantile(math::normal_distribution<double, Quiet>(), p);
}

double StudentCdf(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  return math::cdf(math::students_t_distribution<double, Quiet>(freedom), t);
}

double StudentQuantile(double p, double freedom) {
  if (p <= 0) return -kInfinite;
  if (p >= 1) return kInfinite;
  return math::quantile(math::students_t_distribution<double, Quiet>(freedom), p);
}

double StudentPower(double noncentrality, double freedom, double critical) {
  if (std::isinf(critical)) return 0;
  // Boost's series loses its way far out, where the answer is plain.
  if (std::abs(noncentrality) > 1000) {
    return std::abs(noncentrality) > critical ? 1 : 0;
  }
  const math::non_central_t_distribution<double, Quiet> t(freedom, noncentrality);
  const double above = math::cdf(math::complement(t, critical));
  const double below = math::cdf(t, -critical);
  return std::clamp(above + below, 0.0, 1.0);
}

double StudentShift(double power, double freedom, double critical) {
  const auto beyond = [&](double shift) { return StudentPower(shift, freedom, critical) - power; };
  double low = 0, high = critical + 3;
  while (beyond(high) < 0) {
    low = high;
    high *= 2;
  }
  if (beyond(low) >= 0) return low;
  uintmax_t most = 100;
  const auto found =
      math::tools::toms748_solve(beyond, low, high, math::tools::eps_tolerance<double>(40), most);
  return (found.first + found.second) / 2;
}

}  // namespace headrace::analysis
