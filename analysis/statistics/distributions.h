// Distributions of test statistics (Boost.Math, which is slow to compile: included in the .cc
// alone). Arguments at infinity give the limits.
#pragma once

namespace headrace::analysis {

double NormalCdf(double z);
double NormalQuantile(double p);                   // 0 < p < 1; at the ends infinity
double StudentCdf(double t, double freedom);       // freedom > 0
double StudentQuantile(double p, double freedom);  // as NormalQuantile
// P(|T| > critical) of a t variable with that noncentrality: the power of a two-sided t test.
double StudentPower(double noncentrality, double freedom, double critical);

// The noncentrality at which that test has this power, between its level and 1.
double StudentShift(double power, double freedom, double critical);

}  // namespace headrace::analysis
