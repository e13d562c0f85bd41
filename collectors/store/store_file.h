// What a file must be to be taken for a store: its version, its views, and who died writing it.
// RunStore and ReadStore open their files with these.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/store/statement.h"

namespace headrace::collectors {

constexpr int64_t kApplicationId = 0x68647263;  // "hdrc", in the SQLite header of our files

// Throws unless the file is ours and of a version this program knows. An empty database (version 0
// without tables) passes. Returns the version.
int64_t CheckVersion(Database& database);

// Switching does not wait for other connections by itself; several collectors may start together.
void SwitchToWal(Database& database);

void UpdateViews(Database& database);
bool ViewsAreCurrent(Database& database);

std::string HostName();
// Runs in state 'recording' on this host whose collector is gone.
std::vector<int64_t> FindAbandonedRuns(Database& database);
// Comparisons in state 'running' on this host whose program is gone. Those of earlier versions do
// not say who made them: one that goes on all the same sets its state when it ends.
std::vector<int64_t> FindAbandonedComparisons(Database& database);

}  // namespace headrace::collectors
