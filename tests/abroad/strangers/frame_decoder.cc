// frame_decoder LEVEL: writes decoded frames of 128x128 bytes to its output, for ever. LEVEL is the
// work per pixel.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

int main(int, char** argv) {
  const int level = std::atoi(argv[1]);
  std::vector<uint8_t> frame(128 * 128);
  uint32_t state = 1;
  for (;;) {
    for (auto& pixel : frame) {
      for (int k = 0; k < level; ++k) state = state * 1664525u + 1013904223u;
      pixel = state >> 24;
    }
    size_t at = 0;
    while (at < frame.size()) {
      const ssize_t n = write(1, frame.data() + at, frame.size() - at);
      if (n <= 0) return 0;
      at += n;
    }
  }
}
