// The tables of top: stages in rows with the queue behind each, and the operators of one stage.
// Columns that do not fit are left out from the right; no number is ever cut.
#pragma once
#include <cstddef>
#include <vector>

#include "dashboards/terminal/keys.h"
#include "dashboards/terminal/styled_text.h"
#include "dashboards/terminal/top_model.h"

namespace headrace::dashboards {

// The stages that `state` shows, as indices of model.stages in its order.
std::vector<size_t> ShownStages(const TopModel& model, const TopState& state);

// The header, then the rows of the stages that are shown, each that is the limit with its busiest
// operators, then the trainer and the other limits. At most `width` cells wide and `height` lines
// long (at least 3): where there are more rows, those around the selected stage or the limit are
// kept, and a last line says how many are left out.
std::vector<StyledLine> StageTable(const TopModel& model, const TopState& state, size_t width,
                                   size_t height, bool ascii);

// The header and the operators of the selected stage with all that is known of them; empty where no
// stage is shown.
std::vector<StyledLine> OperatorTable(const TopModel& model, const TopState& state, size_t width,
                                      bool ascii);

// The kinds of threads of a run that is seen from outside, those that work first, and a few of
// those that are idle; empty where none are known.
std::vector<StyledLine> UnitTable(const TopModel& model, size_t width, bool ascii);

}  // namespace headrace::dashboards
