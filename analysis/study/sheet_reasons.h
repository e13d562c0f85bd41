// How a figure of a sheet differs from the published one, and why: told by the other figures.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/work_split.h"
#include "analysis/study/sheet.h"

namespace headrace::analysis {

// "x0.4 of the published"; empty: as published, or not comparable.
std::string DifferenceOf(const SheetInputs& inputs, const SheetFigure& figure);

// Why a figure of a complete sheet differs; may be empty. `transforms`: of the worker, the most
// expensive first.
std::string ReasonOf(const SheetInputs& inputs, const Sheet& sheet,
                     const std::vector<WorkShare>& transforms, const SheetFigure& figure);

}  // namespace headrace::analysis
