// ThreadSanitizer touches memory of its own at every access and every thread: whoever counts page
// faults, or times single operators, sees it as well.
#pragma once

namespace headrace {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace headrace
