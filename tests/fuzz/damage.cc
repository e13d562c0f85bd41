// DWRF files whose metadata lies while their lengths and checksums are right, as no flipped bit
// makes them. Kept apart from the fuzzers: its files go through the whole command line
// (scripts/damaged_files.sh).
//
//   damage files SEED FIRST COUNT DIR FILE...   DIR/NNNNN.dwrf, each a changed copy of a FILE; a
//   line
//                                               for each says what was changed. The same SEED and
//                                               number give the same file.
//   damage rename FILE OUT NAME                 columns, metadata, keys and text bounds are called
//   NAME damage maximum FILE OUT                     every integer maximum in the footer is 1 more
#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "tests/fuzz/torn_file.h"

namespace headrace::fuzz {
namespace {

void Write(const std::string& path, const std::string& bytes) {
  AtomicFile file(path, true);
  file.Write(std::string_view(bytes));
  file.Commit(false);
}

int Main(std::span<char*> arguments) {
  const auto argument = [&](size_t i) { return std::string(arguments[i]); };
  if (arguments.size() >= 7 && argument(1) == "files") {
    const uint64_t seed = std::stoull(argument(2)), first = std::stoull(argument(3));
    const uint64_t count = std::stoull(argument(4));
    for (uint64_t number = first; number < first + count; ++number) {
      Dice dice(seed * 1'000'003 + number);
      const std::string source = argument(6 + Below(&dice, arguments.size() - 6));
      TornFile file(ReadWholeFile(source, 256 << 20));
      std::string said = file.Damage(&dice);
      const std::string bytes = file.Bytes(&said);
      const std::string name = fmt::format("{}/{:05}.dwrf", argument(5), number);
      Write(name, bytes);
      fmt::print("{:05} {}\t{}\n", number, source, said);
    }
    return 0;
  }
  if (arguments.size() == 5 && argument(1) == "rename") {
    TornFile file(ReadWholeFile(argument(2), 256 << 20));
    file.Rename(argument(4));
    std::string said;
    Write(argument(3), file.Bytes(&said));
    return 0;
  }
  if (arguments.size() == 4 && argument(1) == "maximum") {
    TornFile file(ReadWholeFile(argument(2), 256 << 20));
    file.RaiseMaxima();
    std::string said;
    Write(argument(3), file.Bytes(&said));
    return 0;
  }
  std::fputs(
      "usage: damage files SEED FIRST COUNT DIR FILE... | rename FILE OUT NAME | maximum FILE "
      "OUT\n",
      stderr);
  return 2;
}

}  // namespace
}  // namespace headrace::fuzz

int main(int argc, char** argv) {
  try {
    return headrace::fuzz::Main({argv, static_cast<size_t>(argc)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "damage: %s\n", error.what());
    return 1;
  }
}
