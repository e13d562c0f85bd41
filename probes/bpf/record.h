// Record: an entry of an output map, read by the names that its structures have in the .bpf.c file;
// and what entries have in common: operator words, buckets, names of groups of threads.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/probe.h"

struct btf;  // libbpf's

namespace headrace::probes::bpf {

// A member's place and kind.
struct Member {
  enum class Kind : uint8_t { kNumber, kEnum, kText, kNumbers, kRecords };
  Kind kind = Kind::kNumber;
  uint32_t offset = 0, size = 0;
  uint32_t element_size = 0;  // of an array
  std::map<uint64_t, std::string> words;
  // Of each record of an array of them.
  std::map<std::string, Member, std::less<>> inner;
};

using Members = std::map<std::string, Member, std::less<>>;

// The members of a structure; of a plain number one member named "".
Members MembersOf(const btf* types, uint32_t type_id);

// A key or a value of an output map, its members by name as in the .bpf.c file. Valid during the
// visit only. Asking for a member that does not exist is a bug.
class Record {
 public:
  Record(const Members& members, const void* data) : members_(members), data_(data) {}

  uint64_t Number(std::string_view member) const;
  // The name of an enum member's value in lower case, without the prefix that all its enumerators
  // share (HR_CAUSE_STORAGE: "storage"); "unknown" for a number without a name.
  std::string Word(std::string_view member) const;
  // The numbers of an array, and the records of one.
  std::vector<uint64_t> Numbers(std::string_view member) const;
  std::vector<Record> Records(std::string_view member) const;
  // The text of a char array up to its NUL, with control characters replaced by '?'.
  std::string Text(std::string_view member) const;

 private:
  const Member& Find(std::string_view member) const;
  const Members& members_;
  const void* data_;
};

// An operator word (probes/account/account.h: hr_slot.current) taken apart.
struct Word {
  std::optional<uint32_t> operator_index;
  int doing = 0;  // HR_BUSY, HR_WAITING_*
  std::optional<uint32_t> resource_index;
};
Word TakeApart(uint32_t word);

// A measurement, without a metric and a value yet, of the process and the operator that a map's key
// names by its members `tgid` and `word`.
Measurement OfOperator(const Record& key);

// Both buckets of a joint histogram in one label: 64 times the key's `size_bucket` plus its
// `latency_bucket`, each a binary logarithm below 64.
int64_t SizeLatencyBucket(const Record& key);

// The common name of a group of threads: the thread's name without digits at its end and one
// separator before them.
std::string ThreadGroupName(std::string_view comm);

}  // namespace headrace::probes::bpf
