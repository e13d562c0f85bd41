// Registry<T>: name -> entry, filled by static registrars at the end of each entry's own file, so
// that adding an entry is adding a file. Entries come back sorted by name. Not for use before
// main() except by registrars.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

// A name for a registrar's variable that no other one has: several entries may stand in one file,
// and the build may compile several files as one.
#define HR_JOINED_(a, b) a##b
#define HR_JOINED(a, b) HR_JOINED_(a, b)
#define HR_REGISTRAR HR_JOINED(hr_registered_, __COUNTER__)

namespace headrace {

template <typename T>
class Registry {
 public:
  // The process-wide registry of T.
  static Registry& Global() {
    static Registry registry;
    return registry;
  }

  // Adds `entry`; two entries of one name are a bug. Returns true, for use in a static initialiser.
  bool Add(std::string name, T entry) {
    const bool inserted = entries_.emplace(std::move(name), std::move(entry)).second;
    HR_CHECK(inserted, "two registry entries share a name");
    return true;
  }

  // The entry of that name, or null.
  const T* Find(std::string_view name) const {
    auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }

  const std::map<std::string, T, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, T, std::less<>> entries_;
};

// The candidate closest to `name` by edit distance, if it is close enough to be a likely typing
// error (distance at most a third of the longer name, at least 1); empty otherwise.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace headrace
