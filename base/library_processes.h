// Processes that libraries start, by the names and the commands that they give them.
#pragma once
#include <string>
#include <string_view>

namespace headrace {

// A process that a library starts for itself, such as Ray's daemons: it looks after others, makes
// nothing for the program, and sleeps between two looks. Empty for any other; else its name, which
// may be clearer than `name`, as "ray log_monitor.py" for "python". `name`: of its first thread, of
// which the kernel keeps 15 characters.
std::string ServiceName(std::string_view name, std::string_view command);

// Whether Ray named the process after tasks or an actor that it runs or waits for.
bool IsOfRay(std::string_view name);

// Whether it is a worker of Ray's without a task at that moment.
bool IsIdleRayWorker(std::string_view name);

// Whether it runs those of the program: no idle one does, and none of Ray's own actors.
bool IsRayWorker(std::string_view name);

}  // namespace headrace
