// HR_CHECK(condition, note): a broken invariant is our bug; it prints file, line and note and
// aborts, in release builds too. Never for input: bad input throws Error.
#pragma once
#include <cstdio>
#include <cstdlib>

#define HR_CHECK(condition, note)                                                            \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: bug: %s is false (%s)\n", __FILE__, __LINE__, #condition, \
                   note);                                                                    \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
