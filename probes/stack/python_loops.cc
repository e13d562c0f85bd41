#include "probes/stack/python_loops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMostLines = 1 << 16;
constexpr size_t kMostFiles = 20'000;  // names, most of libraries
constexpr size_t kMostLinesOfAll = 1 << 20;
constexpr size_t kMostSourceBytes = 1 << 20;

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool BeginsWithWord(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !IsWord(text[word.size()]));
}

// Whether there is a call of the function `call`, not of one whose name ends so; `of_object`: or of
// a method of that name. `call` ends in its parenthesis: "next(".
bool Calls(std::string_view code, std::string_view call, bool of_object) {
  for (size_t at = code.find(call); at != std::string_view::npos; at = code.find(call, at + 1)) {
    if (at == 0 || (!IsWord(code[at - 1]) && (of_object || code[at - 1] != '.'))) return true;
  }
  return false;
}

// "with self.write_lock:", "slots.acquire()"; not "with open(clock)".
bool Locks(std::string_view code) {
  if (code.find(".acquire(") != std::string_view::npos) return true;  // whatever it is called
  if (!BeginsWithWord(code, "with")) return false;
  std::string name(code.substr(0, code.find_first_of("(:", 4)));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kNames[] = {"lock", "mutex", "semaphore", "gate"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view word) {
    const size_t at = name.rfind(word);
    // Not a block, a clock, or what unlocks.
    return at != std::string::npos &&
           (at == 0 || std::string_view("bcn").find(name[at - 1]) == std::string_view::npos);
  });
}

// What encloses lines with a larger indentation.
struct Block {
  size_t indent = 0;
  size_t loop = 0;  // its line; 0: a function or class, whose body is in no loop of its caller
  size_t outermost = 0;
};

// Whether nothing but a comment follows the colon that ends a `for`.
bool EndsInColon(std::string_view code) {
  const size_t comment = code.find(" #");
  if (comment != std::string_view::npos) code = code.substr(0, comment);
  const size_t last = code.find_last_not_of(" \t\r");
  return last != std::string_view::npos && code[last] == ':';
}

// Of a regular file that was not changed after `not_after_s`. What is no such file is not opened: a
// device may begin to work, a pipe would be waited for.
std::string ReadSource(const std::string& path, int64_t not_after_s) {
  const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return "";
  struct stat info = {};
  std::string text;
  const bool is_file = fstat(place, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  if (is_file && (not_after_s == 0 || info.st_mtim.tv_sec <= not_after_s)) {
    const int fd = open(fmt::format("/proc/self/fd/{}", place).c_str(), O_RDONLY | O_CLOEXEC);
    text.resize(std::min(static_cast<size_t>(info.st_size), kMostSourceBytes));
    const ssize_t n = fd < 0 ? -1 : read(fd, text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (fd >= 0) close(fd);
  }
  close(place);
  return text;
}

}  // namespace

std::vector<LoopOfLine> FindLoops(std::string_view source) {
  std::vector<LoopOfLine> lines;
  std::vector<Block> blocks;
  while (!source.empty() && lines.size() < kMostLines) {
    const size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    const size_t number = lines.size() + 1;
    const size_t indent = line.find_first_not_of(" \t\r");
    LoopOfLine found;
    if (indent != std::string_view::npos && line[indent] != '#') {
      const std::string_view code = line.substr(indent);
      while (!blocks.empty() && blocks.back().indent >= indent) blocks.pop_back();
      const bool is_async = BeginsWithWord(code, "async");
      const std::string_view statement =
          is_async ? code.substr(std::min(code.find_first_not_of(' ', 5), code.size())) : code;
      const bool is_for = BeginsWithWord(statement, "for");
      if (is_for || BeginsWithWord(statement, "while")) {
        const size_t outer = blocks.empty() ? 0 : blocks.back().outermost;
        blocks.push_back({indent, number, outer > 0 ? outer : number});
      } else if (BeginsWithWord(statement, "def") || BeginsWithWord(statement, "class")) {
        blocks.push_back({indent, 0, 0});
      }
      if (!blocks.empty()) {
        found.loop = blocks.back().loop;
        found.outermost = blocks.back().outermost;
      }
      found.asks = Calls(code, "next(", false) || (is_for && EndsInColon(code));
      found.sleeps = !Calls(code, "await ", false) && Calls(code, "sleep(", true);
      found.locks = Locks(statement);
    }
    lines.push_back(found);
  }
  return lines;
}

const std::vector<LoopOfLine>& PythonLoops::LinesOf(const std::string& file) {
  const auto known = lines_.find(file);
  if (known != lines_.end()) return known->second;
  static const std::vector<LoopOfLine> kNone;
  if (lines_.size() >= kMostFiles || lines_count_ >= kMostLinesOfAll) return kNone;
  std::string source;
  const bool is_source = file.ends_with(".py") && file.find("..") == std::string::npos;
  for (size_t f = 0; is_source && f < folders_.size() && source.empty(); ++f) {
    source = ReadSource(folders_[f] + "/" + file, not_after_s_);
  }
  const auto& lines = lines_.emplace(file, FindLoops(source)).first->second;
  lines_count_ += lines.size();
  return lines;
}

std::string PythonLoops::Mark(std::string_view frames) {
  std::string marked;
  while (!frames.empty()) {
    const size_t end = std::min(frames.find(';'), frames.size());
    const std::string_view frame = frames.substr(0, end);
    frames.remove_prefix(std::min(end + 1, frames.size()));
    if (!marked.empty()) marked += ';';
    const size_t open = frame.rfind(" (");
    const size_t colon = frame.rfind(':');
    size_t line = 0;
    if (open == std::string_view::npos || colon == std::string_view::npos || colon < open ||
        std::from_chars(frame.data() + colon + 1, frame.data() + frame.size(), line).ptr !=
            frame.data() + frame.size() - 1 ||
        frame.back() != ')') {
      marked += frame;
      continue;
    }
    const auto& lines = LinesOf(std::string(frame.substr(open + 2, colon - open - 2)));
    if (line == 0 || line > lines.size()) {
      marked += frame;
      continue;
    }
    const LoopOfLine& found = lines[line - 1];
    marked += frame.substr(0, frame.size() - 1);
    marked += found.loop > 0 ? fmt::format(", loop {}", found.loop) : ", no loop";
    if (found.outermost != found.loop) marked += fmt::format(" of {}", found.outermost);
    if (found.asks) marked += ", next";
    if (found.locks) marked += ", locks";
    if (found.sleeps) marked += ", sleeps";
    marked += ')';
  }
  return marked;
}

}  // namespace headrace::probes::stack
