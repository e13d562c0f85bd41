// Keys of `headrace top`, as btop has them, and what they do to the view. Pure: no terminal is read
// here (screen.h does).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::dashboards {

// A key that was pressed. Characters are themselves; the others have no character.
struct Key {
  enum class Kind : uint8_t {
    kCharacter,
    kUp,
    kDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kResize,  // the terminal has another size
    kClosed   // the terminal is gone
  };
  Kind kind = Kind::kCharacter;
  std::string text = "";  // of kCharacter: one character in UTF-8
};

enum class TopSort : uint8_t { kPipeline, kBusy, kAllows, kName };
const char* TopSortName(TopSort sort);  // "pipeline", "busy", ...

// What the user chose to see.
struct TopState {
  bool quit = false;
  bool frozen = false;     // the view stays as it is; reading and recording go on
  bool help = false;       // the page of keys is shown
  bool operators = false;  // the operators of the selected stage are shown
  bool typing = false;     // keys go into the filter
  bool selecting = false;  // a stage is selected, and marked
  size_t selected = 0;     // index of the shown stage
  TopSort sort = TopSort::kPipeline;
  std::string filter;  // shown are stages whose name, or an operator's name, contains it
  int64_t interval_ns = 1'000'000'000;
  // A command was started for this view and still runs: `quit` is asked about first.
  bool asks = false, asking = false;
  bool mark = false;         // this moment is to be marked; the view takes it back
  bool address = false;      // the address of the run's page is shown
  bool end_command = false;  // the answer: it is ended
};

inline constexpr int64_t kLeastIntervalNs = 250'000'000, kMostIntervalNs = 60'000'000'000;

// Changes `state` as `key` says; `stages`: how many are shown. Keys without a meaning do nothing.
void Press(const Key& key, size_t stages, TopState* state);

// The keys and what they do, a line each, for the page of `?`.
struct KeyHelp {
  const char* key;
  const char* does;
};
const std::vector<KeyHelp>& KeyHelps();

}  // namespace headrace::dashboards
