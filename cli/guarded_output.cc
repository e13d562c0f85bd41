#include "cli/guarded_output.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/terminal_text.h"

namespace headrace::cli {
namespace {

struct GuardedStream {
  int descriptor;
  TerminalFilter filter;
  std::FILE* plain = nullptr;  // what stdout or stderr was
  int failure = 0;             // errno of the first write that failed
};
// Not freed: the C library writes what is left in the streams after everything else has ended.
GuardedStream* const output = new GuardedStream{STDOUT_FILENO, {}, nullptr};
GuardedStream* const error_output = new GuardedStream{STDERR_FILENO, {}, nullptr};

bool WriteAll(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// 0 tells the stream of an error; errno stays.
ssize_t WriteGuarded(void* cookie, const char* bytes, size_t size) {
  auto* stream = static_cast<GuardedStream*>(cookie);
  if (WriteAll(stream->descriptor, stream->filter.Pass({bytes, size})))
    return static_cast<ssize_t>(size);
  if (stream->failure == 0) stream->failure = errno;
  return 0;
}

// Standard streams are variables in the GNU C library, which says so.
void Guard(GuardedStream* stream, std::FILE** standard, int mode) {
  cookie_io_functions_t functions = {};
  functions.write = WriteGuarded;
  std::FILE* guarded = fopencookie(stream, "w", functions);
  if (guarded == nullptr) return;
  std::setvbuf(guarded, nullptr, mode, 1 << 16);
  std::fflush(*standard);
  stream->plain = *standard;
  *standard = guarded;
}

void Release(GuardedStream* stream, std::FILE** standard) {
  if (stream->plain == nullptr) return;
  std::fclose(*standard);
  WriteAll(stream->descriptor, stream->filter.Finish());
  *standard = std::exchange(stream->plain, nullptr);
}

}  // namespace

OutputGuard::OutputGuard() {
  Guard(output, &stdout, isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF);
  Guard(error_output, &stderr, _IONBF);
}

OutputGuard::~OutputGuard() {
  Release(output, &stdout);
  Release(error_output, &stderr);
}

int StandardOutputFailure() { return output->failure; }

std::FILE* DataOutput() {
  return output->plain == nullptr || isatty(STDOUT_FILENO) == 1 ? stdout : output->plain;
}

}  // namespace headrace::cli
