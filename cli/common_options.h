// What options that several commands have are in all of them: the same heading in --help and the
// same word for their value and what holds without it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace headrace::cli {

// What the configuration file may say of an option: nothing, since each call says it anew; below a
// command; or for all commands at once, since it means the same in each.
enum class Scope : uint8_t { kCall, kCommand, kEverywhere };

struct CommonOptionEntry {
  const char* name;   // the long one
  const char* group;  // its heading; null: that of the command
  const char* value;  // what it takes; null: a flag, or the command says it
  Scope scope = Scope::kCommand;
  const char* default_text = nullptr;  // what holds without it; null: the command says it
};

std::span<const CommonOptionEntry> CommonOptions();

// The entry of the option with that long name, or null.
const CommonOptionEntry* CommonOption(std::string_view name);

// Headings that end every command's list, in this order.
inline constexpr const char* kMeasuring = "What is measured";
inline constexpr const char* kRemoteStorage = "Remote storage";
inline constexpr const char* kCommon = "Common options";

}  // namespace headrace::cli
