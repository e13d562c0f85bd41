#include "probes/bpf/record.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "base/ascii.h"
#include "base/check.h"

namespace headrace::probes::bpf {

namespace {

std::map<uint64_t, std::string> EnumWords(const btf* types, const btf_type* type) {
  const struct btf_enum* entries = ::btf_enum(type);
  std::vector<std::pair<uint64_t, std::string>> names;
  for (int i = 0; i < btf_vlen(type); i++) {
    names.emplace_back(static_cast<uint32_t>(entries[i].val),
                       btf__name_by_offset(types, entries[i].name_off));
  }
  size_t common = names.empty() ? 0 : names[0].second.size();
  for (const auto& [value, name] : names) {
    size_t n = 0;
    while (n < common && n < name.size() && name[n] == names[0].second[n]) ++n;
    common = n;
  }
  if (names.size() == 1) common = 0;
  while (common > 0 && names[0].second[common - 1] != '_') --common;
  std::map<uint64_t, std::string> words;
  for (const auto& [value, name] : names) words[value] = LowerCase(name.substr(common));
  return words;
}

void DescribeArray(const btf* types, const struct btf_array& array, Member* member) {
  const auto element = static_cast<uint32_t>(btf__resolve_type(types, array.type));
  const btf_type* type = btf__type_by_id(types, element);
  member->element_size =
      static_cast<uint32_t>(std::max<int64_t>(0, btf__resolve_size(types, element)));
  if (type && btf_is_struct(type)) {
    member->kind = Member::Kind::kRecords;
    member->inner = MembersOf(types, element);
  } else {
    member->kind = member->element_size == 1 ? Member::Kind::kText : Member::Kind::kNumbers;
  }
}

}  // namespace

Members MembersOf(const btf* types, uint32_t type_id) {
  Members members;
  type_id = static_cast<uint32_t>(btf__resolve_type(types, type_id));
  const btf_type* type = btf__type_by_id(types, type_id);
  if (!type) return members;
  if (!btf_is_struct(type)) {
    Member whole;
    whole.size = static_cast<uint32_t>(std::max<int64_t>(0, btf__resolve_size(types, type_id)));
    members.emplace("", whole);
    return members;
  }
  const btf_member* list = btf_members(type);
  for (int i = 0; i < btf_vlen(type); i++) {
    Member member;
    member.offset = btf_member_bit_offset(type, static_cast<uint32_t>(i)) / 8;
    const int resolved = btf__resolve_type(types, list[i].type);
    const btf_type* inner = btf__type_by_id(types, static_cast<uint32_t>(resolved));
    member.size = static_cast<uint32_t>(
        std::max<int64_t>(0, btf__resolve_size(types, static_cast<uint32_t>(resolved))));
    if (inner && btf_is_enum(inner)) {
      member.kind = Member::Kind::kEnum;
      member.words = EnumWords(types, inner);
    } else if (inner && btf_is_array(inner)) {
      DescribeArray(types, *btf_array(inner), &member);
    }
    members.emplace(btf__name_by_offset(types, list[i].name_off), member);
  }
  return members;
}

uint64_t Record::Number(std::string_view name) const {
  const Member& member = Find(name);
  uint64_t value = 0;
  std::memcpy(&value, static_cast<const uint8_t*>(data_) + member.offset,
              std::min<size_t>(member.size, sizeof value));
  return value;
}

std::string Record::Word(std::string_view name) const {
  const auto& words = Find(name).words;
  const auto it = words.find(Number(name));
  return it == words.end() ? "unknown" : it->second;
}

std::vector<uint64_t> Record::Numbers(std::string_view name) const {
  const Member& member = Find(name);
  HR_CHECK(member.kind == Member::Kind::kNumbers, "the member of a BPF map is no array of numbers");
  const auto* at = static_cast<const uint8_t*>(data_) + member.offset;
  std::vector<uint64_t> numbers(member.size / member.element_size);
  for (uint64_t& number : numbers) {
    std::memcpy(&number, at, std::min<size_t>(member.element_size, sizeof number));
    at += member.element_size;
  }
  return numbers;
}

std::vector<Record> Record::Records(std::string_view name) const {
  const Member& member = Find(name);
  HR_CHECK(member.kind == Member::Kind::kRecords, "the member of a BPF map is no array of records");
  const auto* at = static_cast<const uint8_t*>(data_) + member.offset;
  std::vector<Record> records;
  for (uint32_t done = 0; done < member.size; done += member.element_size) {
    records.emplace_back(member.inner, at + done);
  }
  return records;
}

std::string Record::Text(std::string_view name) const {
  const Member& member = Find(name);
  const char* text = static_cast<const char*>(data_) + member.offset;
  std::string result(text, strnlen(text, member.size));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  return result;
}

const Member& Record::Find(std::string_view name) const {
  const auto it = members_.find(name);
  HR_CHECK(it != members_.end(), "a BPF map has no such member");
  return it->second;
}

Word TakeApart(uint32_t word) {
  Word result;
  if ((word & 0xffff) != 0) result.operator_index = (word & 0xffff) - 1;
  result.doing = static_cast<int>(word >> 16 & 3);
  if (word >> 20 != 0) result.resource_index = (word >> 20) - 1;
  return result;
}

Measurement OfOperator(const Record& key) {
  Measurement m;
  m.labels.pid = static_cast<int64_t>(key.Number("tgid"));
  m.labels.operator_index = TakeApart(static_cast<uint32_t>(key.Number("word"))).operator_index;
  return m;
}

int64_t SizeLatencyBucket(const Record& key) {
  const auto bucket = [&](const char* member) {
    return static_cast<int64_t>(std::min<uint64_t>(key.Number(member), 62));
  };
  return 64 * bucket("size_bucket") + bucket("latency_bucket");
}

std::string ThreadGroupName(std::string_view comm) {
  size_t end = comm.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(comm[end - 1]))) --end;
  if (end == comm.size()) return std::string(comm);
  if (end > 0 && std::strchr("-_:/#. ", comm[end - 1])) --end;
  return end == 0 ? std::string(comm) : std::string(comm.substr(0, end));
}

}  // namespace headrace::probes::bpf
