// headrace layout --advise: what rewriting the table would give the job that reads it.
#pragma once
#include <string>

#include "reader/pipeline/split.h"
#include "workloads/layout_advice.h"

namespace headrace::cli {

// Measures, and prints a table and what to do, or JSON (headrace.layout_advice/1). `name` is the
// table as the user called it. Throws Error as AdviseLayout does, and kInterrupted.
void PrintAdvice(const reader::Table& table, const std::string& name,
                 const reader::dwrf::Projection& projection, workloads::LayoutAdviceOptions options,
                 bool json);

}  // namespace headrace::cli
