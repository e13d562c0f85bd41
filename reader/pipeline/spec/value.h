// SpecValue: a value of a pipeline file while the file is read. It knows its position, so that
// every mistake becomes an Error kUsage with file, line and column. Code that reads a section or an
// operator's keys uses this class instead of the library that parses TOML.
//
//   const SpecValue table = root.Table("delivery");
//   if (!table) return;
//   table.CheckKeys("[delivery]", {"to", "ring", "window"});
//   delivery.window = table.Count("window", delivery.window, 0, 1u << 20);
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headrace::reader {

// The settings in force, "source.throttle.iops" -> "100": every key that is read, with the text of
// the file or of the setting that replaces it, or else with its default.
using SettingsInForce = std::map<std::string, std::string>;

// The file that a value is from, for messages, and the folder that its relative paths start from.
// Whatever is read from it is noted in `settings`, if given.
struct SpecFile {
  std::string path, folder;
  SettingsInForce* settings = nullptr;
};

class SpecValue {
 public:
  // `node` is the library's node, or null for what is not in the file. It and `file` outlive the
  // value. `name` is what settings call it: "source.throttle"; empty for the file itself.
  SpecValue(const SpecFile& file, const void* node, std::string name = "")
      : file_(&file), node_(node), name_(std::move(name)) {}

  explicit operator bool() const { return node_ != nullptr; }  // whether the file has it

  // Throws Error kUsage at the value's place.
  [[noreturn]] void Fail(const std::string& what) const;
  // "FILE:LINE:COLUMN"; the file alone for what it does not have, or what a setting added.
  std::string Place() const;
  uint32_t line() const;  // 0: it has none
  uint32_t column() const;
  const SpecFile& file() const { return *file_; }

  bool is_table() const;
  bool is_list() const;
  // Nothing for a value of another type.
  std::optional<std::string> AsText() const;
  std::optional<int64_t> AsInteger() const;
  std::optional<double> AsReal() const;    // written as one: 1.0
  std::optional<double> AsNumber() const;  // 1 or 1.0
  std::optional<bool> AsFlag() const;
  // Of a list. Settings call them "transform[0]", "transform[1]", ...
  std::vector<SpecValue> Items() const;
  std::vector<std::pair<std::string, SpecValue>> Members() const;  // of a table, by name

  // The same value under the name that settings have for it: "decode" for a stage.
  SpecValue Called(const std::string& name) const { return {*file_, node_, name}; }

  // For a table: refuses keys that are not in `allowed`, and names the nearest one that is. A table
  // that the file does not have has no wrong keys.
  void CheckKeys(const std::string& section, const std::vector<std::string>& allowed) const;
  // For a table, also one that the file does not have: the value of `key`, checked, or `otherwise`
  // if it is missing. All but the first two note it among the settings in force.
  SpecValue operator[](const std::string& key) const;
  SpecValue Table(const std::string& key) const;
  std::string Text(const std::string& key, const std::string& otherwise) const;
  uint64_t Count(const std::string& key, uint64_t otherwise, uint64_t low, uint64_t high) const;
  bool Flag(const std::string& key, bool otherwise) const;
  double Number(const std::string& key, double otherwise) const;
  double Duration(const std::string& key, double otherwise_ns) const;  // "5ms" or 0, in ns
  uint64_t Bytes(const std::string& key, uint64_t otherwise) const;    // "64KiB" or a whole number
  double Rate(const std::string& key, double otherwise) const;         // "200MB/s", in bytes/s
  // Whether the text is `second`, which must be one of the two; a missing key counts as `first`.
  bool IsSecond(const std::string& key, const char* first, const char* second) const;

  // `path` as an absolute one; a relative path starts from the folder of the file.
  std::string Path(const std::string& path) const;

 private:
  // The value of `key`, whose text is noted: `otherwise` where it is missing.
  SpecValue Noted(const std::string& key, const std::string& otherwise) const;

  const SpecFile* file_;
  const void* node_;
  std::string name_;
};

// ", did you mean 'NAME'?" for the nearest of `names`; empty when none is near.
std::string DidYouMean(const std::string& name, const std::vector<std::string>& names);

}  // namespace headrace::reader
