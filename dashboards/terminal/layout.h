// The screen of `headrace top` as lines of styled text: a pure function of what is to be shown, the
// size of the terminal, and what the user chose.
//
//   head       the run: step time, share of it that the trainer waits, rate and wanted rate
//              cores, memory, level, what recording costs; which part of the run the figures are of
//   table      stages in the order of the pipeline with the queue behind each, the limit marked
//   sentences  the first page of the report, word by word
//   trends     sparklines, where there is room
//   keys
#pragma once
#include <cstddef>
#include <vector>

#include "dashboards/terminal/keys.h"
#include "dashboards/terminal/styled_text.h"
#include "dashboards/terminal/top_model.h"

namespace headrace::dashboards {

struct TopLayout {
  size_t width = 80;
  size_t height = 24;  // 0: as many lines as it takes
  bool ascii = false;
  // A text that is printed once: no keys, no blank lines at its end, and commands on one line of
  // whatever length, to be pasted.
  bool once = false;
};

// Below this size only the head and the limit are shown.
inline constexpr size_t kLeastTopWidth = 60, kLeastTopHeight = 20;

// At most `height` lines (exactly that many unless `once`), each at most `width` cells wide; only
// pasted commands of `once` are longer.
std::vector<StyledLine> LayOutTop(const TopModel& model, const TopState& state,
                                  const TopLayout& layout);

}  // namespace headrace::dashboards
