// What the overview says and the manual repeats.
#pragma once

namespace headrace::cli {

inline constexpr const char* kExitCodes =
    "0 ok, 1 failure, 2 usage, 3 gate failed, 4 inconclusive or infeasible, 5 bad input data, 6 "
    "privilege or kernel feature missing, 7 out of disk or memory, 130 interrupted";

inline constexpr const char* kOverviewExamples =
    "  headrace demo                                # a small table, a real run, a verdict\n"
    "  headrace profile -- python train.py          # record your own program: what limits it\n"
    "  headrace generate rm1 -o rm1                 # a table like a ranking model's, and a "
    "pipeline to read it\n"
    "  headrace run rm1/pipeline.toml               # run and record it\n"
    "  headrace report latest                       # what limits it, what to change, what that "
    "gains\n";

}  // namespace headrace::cli
