// A local file through io_uring: the reads of one call are in flight together. Each thread has a
// ring of its own, made at its first read and shared by all its files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "reader/source/source.h"

namespace headrace::reader {

// At most `depth` reads in flight per thread. With `registered`, reads into PinnedBuffers spare the
// kernel the look-up of their pages at every request; where it does not let them be registered they
// are ordinary reads, and note() says why. Throws Error kPrivilege where there is no io_uring.
std::shared_ptr<const Source> OpenUringFile(const std::string& path, bool direct, uint32_t depth,
                                            bool registered);

}  // namespace headrace::reader
