// A store of another version read as this version would have it, without a change to the file:
// temporary views of the connection stand before what differs.
#pragma once
#include "collectors/store/statement.h"

namespace headrace::collectors {

// Refuses a file of ours in which reading would run a statement that the file brings: a view, a
// virtual table or a computed column under the name of one of our tables of any version. Throws
// Error kBadData. Takes about 1 ms.
void CheckTables(Database& database);

// Stands before: tables and columns that later migrations added, with the defaults these give;
// views of another text; runs and comparisons whose writer is gone, as interrupted. `version` is
// what CheckVersion returned. Nothing is made where nothing differs. Takes about 1 ms, however
// large the store is.
void ShowAsCurrent(Database& database, int64_t version);

}  // namespace headrace::collectors
