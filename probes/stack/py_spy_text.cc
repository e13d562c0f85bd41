#include "probes/stack/py_spy_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace headrace::probes::stack {
namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr int64_t kMostSamples = 1'000'000'000;

bool Skip(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

std::optional<int64_t> SkipNumber(std::string_view* text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

// `process 7:"python train.py";`. The command may hold quotes and semicolons: it ends where the
// next process or the thread begins.
bool SkipProcess(std::string_view* text, int64_t* pid) {
  if (!Skip(text, "process ")) return false;
  const std::optional<int64_t> number = SkipNumber(text);
  if (!number || !Skip(text, ":\"")) return false;
  size_t end = std::string_view::npos;
  for (const std::string_view next : {"\";process ", "\";thread ("}) {
    end = std::min(end, text->find(next));
  }
  if (end == std::string_view::npos) return false;
  text->remove_prefix(end + 2);
  *pid = *number;
  return true;
}

// `thread (9): MainThread;`, `thread (9);` or `thread (0x7F12);`
bool SkipThread(std::string_view* text, int64_t* tid, std::string* name) {
  if (!Skip(text, "thread (")) return false;
  const size_t end = text->find(';');
  const size_t close = text->find(')');
  if (end == std::string_view::npos || close > end) return false;
  std::string_view number = text->substr(0, close);
  const std::optional<int64_t> decimal = SkipNumber(&number);
  if (decimal && number.empty()) *tid = *decimal;
  std::string_view rest = text->substr(close + 1, end - close - 1);
  if (Skip(&rest, ": ")) *name = rest;
  text->remove_prefix(end + 1);
  return true;
}

std::string WithoutControl(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  return out;
}

std::optional<PythonStack> ParseLine(std::string_view line) {
  if (line.size() > kLongestLine) return std::nullopt;
  const size_t blank = line.rfind(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  std::string_view count = line.substr(blank + 1);
  const std::optional<int64_t> samples = SkipNumber(&count);
  if (!samples || !count.empty() || *samples < 1 || *samples > kMostSamples) return std::nullopt;
  PythonStack stack;
  stack.samples = *samples;
  std::string_view text = line.substr(0, blank);
  while (text.starts_with("process ")) {
    if (!SkipProcess(&text, &stack.pid)) return std::nullopt;
  }
  if (text.starts_with("thread (") && !SkipThread(&text, &stack.tid, &stack.thread))
    return std::nullopt;
  if (text.empty()) return std::nullopt;
  stack.thread = WithoutControl(stack.thread);
  stack.frames = WithoutControl(text);
  return stack;
}

}  // namespace

PySpyText ParsePySpyText(std::string_view text) {
  PySpyText parsed;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (auto stack = ParseLine(line))
      parsed.stacks.push_back(std::move(*stack));
    else
      parsed.refused_lines++;
  }
  return parsed;
}

}  // namespace headrace::probes::stack
