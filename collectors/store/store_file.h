// Checks whether a file is a store and of which version, brings it up to date, and finds what dead
// writers left in it. RunStore and open_to_read.h open their files with these.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/store/statement.h"

namespace headrace::collectors {

constexpr int64_t kApplicationId = 0x68647263;  // "hdrc", in the SQLite header of our files

// Returns the version of the schema. Throws Error kBadData unless the file is ours and of a version
// this program knows. An empty database (without tables and of version 0) passes.
int64_t CheckVersion(Database& database);
// Brings a store of an earlier version, or an empty database, to this version and its views.
void Migrate(Database& database);

// Switches the database to write-ahead logging. Several collectors may do this at once, and SQLite
// does not wait for other connections here, so this function does.
void SwitchToWal(Database& database);

// The statement of a view file from CREATE to just before its last semicolon: the text that SQLite
// stores.
std::string_view CreateStatement(std::string_view text);
bool ViewsAreCurrent(Database& database);

// The permissions of the file, for copies of what it holds; 0600 where they cannot be read.
uint32_t ModeOf(const std::string& path);

std::string HostName();
// Runs in state 'recording' on this host whose collector is gone.
std::vector<int64_t> FindAbandonedRuns(Database& database);
// Comparisons in state 'running' on this host whose program is gone. Comparisons of earlier
// versions do not record their program and count as abandoned; one that still runs sets its state
// when it ends.
std::vector<int64_t> FindAbandonedComparisons(Database& database);

}  // namespace headrace::collectors
