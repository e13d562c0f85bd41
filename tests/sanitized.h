// ThreadSanitizer touches memory of its own at every access and every thread: whoever counts page
// faults, or times single operators, sees it as well. AddressSanitizer keeps hundreds of MiB of
// freed memory and shadow: a process at rest has that much.
#pragma once

namespace headrace {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace headrace
