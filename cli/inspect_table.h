// What the files of a table say about themselves, one line each.
#pragma once
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"
#include "reader/source/options.h"

namespace headrace::cli {

// Prints a table of the files `files`, the sums, and what differs between them; or all of it as one
// object, schema headrace.inspect_table/1. Returns kOk, and kBadData where a file is damaged or has
// other columns than the first; the others are printed all the same. Throws Error where none can
// be opened.
int InspectTable(const std::string& place, const std::vector<std::string>& files,
                 const reader::SourceOptions& source, const reader::dwrf::OpenOptions& open,
                 bool json);

}  // namespace headrace::cli
