// The families of processors that the event catalogue knows.
//
// The encodings are our own and each was checked against a second table (a test compares all of
// them with libpfm4's, and names those where libpfm4 is wrong). What could not be checked is left
// out. The last family stands for processors that are in none: the kernel's generic events, marked
// as such.
#pragma once
#include <vector>

#include "probes/perf/catalogue_entry.h"

namespace headrace::probes::perf {

std::vector<CpuFamily> CpuFamilies();

}  // namespace headrace::probes::perf
