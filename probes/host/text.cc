#include "probes/host/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace headrace::probes {

std::vector<std::string_view> Fields(std::string_view line, size_t limit) {
  std::vector<std::string_view> fields;
  while (fields.size() < limit) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

std::optional<int64_t> Integer(std::string_view field, int base) {
  int64_t value = 0;
  const char* end = field.data() + field.size();
  const auto result = std::from_chars(field.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<int64_t> Count(std::string_view field, int base) {
  const auto value = Integer(field, base);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key) {
  for (std::string_view line; NextLine(&text, &line);) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (line.empty() || (line.front() != ' ' && line.front() != '\t')) continue;
    const auto fields = Fields(line, 1);
    return fields.empty() ? std::nullopt : Count(fields[0]);
  }
  return std::nullopt;
}

std::optional<std::string> ReadWord(const Host& host, const std::string& path) {
  const auto text = host.Read(path, 4096);
  if (!text) return std::nullopt;
  std::string_view rest = *text, line;
  if (!NextLine(&rest, &line)) {
    errno = EINVAL;
    return std::nullopt;
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  return std::string(line);
}

std::optional<int64_t> ReadInteger(const Host& host, const std::string& path) {
  const auto word = ReadWord(host, path);
  if (!word) return std::nullopt;
  const auto value = Integer(*word);
  if (!value) errno = EINVAL;
  return value;
}

std::optional<int64_t> ReadCount(const Host& host, const std::string& path) {
  const auto value = ReadInteger(host, path);
  if (value && *value < 0) {
    errno = EINVAL;
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return name.empty() || name.front() == '-' ? std::nullopt : Count(name);
}

std::string ReadFailure(const std::string& path) {
  return errno == EINVAL ? path + ": content not understood"
                         : fmt::format("open {}: {}", path, std::strerror(errno));
}

std::string ReadFix(const std::string& otherwise) {
  return errno == EACCES || errno == EPERM
             ? "run as root (in a container: with the host's /proc and /sys readable)"
             : otherwise;
}

}  // namespace headrace::probes
