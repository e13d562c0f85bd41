// Lets a store of another version be read as if it were of this version, without changing the file:
// temporary views of the connection hide what differs.
#pragma once
#include "collectors/store/statement.h"

namespace headrace::collectors {

// Refuses a store in which reading would run a statement from the file: a view, a virtual table or
// a computed column under the name of one of our tables of any version. Throws Error kBadData.
// Takes about 1 ms.
void CheckTables(Database& database);

// Makes temporary views for: tables and columns that later migrations added, with the migrations'
// defaults; views with another text; runs and comparisons whose writer is gone, shown as
// interrupted. `version` is what CheckVersion returned. Makes none where nothing differs. Takes
// about 1 ms, however large the store is.
void ShowAsCurrent(Database& database, int64_t version);

}  // namespace headrace::collectors
