// The import hook for Python programs that were not changed for headrace:
// probes/python/headrace/hook.
#pragma once
#include <string>

namespace headrace::cli {

// Puts the hook's folder first in PYTHONPATH of this process, for what it starts, and names the
// library of accounts beside a headrace that was not installed. False where the Python package is
// not found by this executable's place: in ../share/headrace/python, in the packages of the Python
// that pip installed both for, or in the source it was built from.
bool SetImportHook();

}  // namespace headrace::cli
