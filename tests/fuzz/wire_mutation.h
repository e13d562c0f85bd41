// Protobuf messages changed as messages: fields of any depth get other values, go, come twice,
// swap, or change their number, and the lengths around them are right again. No schema is needed:
// what parses as a message is one.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::fuzz {

using Dice = std::mt19937_64;

inline uint64_t Below(Dice* dice, uint64_t end) { return end == 0 ? 0 : (*dice)() % end; }

struct Field {
  uint32_t number = 0, wire = 0;
  uint64_t value = 0;           // wire 0, 1, 5
  std::string bytes;            // wire 2, where it is no message
  std::vector<Field> children;  // wire 2
  bool is_message = false;
};

inline bool TakeVarint(std::string_view* in, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    *value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

inline std::optional<std::vector<Field>> ParseMessage(std::string_view in, int depth = 0) {
  std::vector<Field> fields;
  while (!in.empty()) {
    uint64_t tag;
    if (!TakeVarint(&in, &tag) || tag >> 3 == 0 || tag >> 3 > 64) return std::nullopt;
    Field field;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire = tag & 7;
    const size_t fixed = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
    if (field.wire == 0) {
      if (!TakeVarint(&in, &field.value)) return std::nullopt;
    } else if (fixed > 0) {
      if (in.size() < fixed) return std::nullopt;
      for (size_t i = 0; i < fixed; ++i)
        field.value |= uint64_t{static_cast<unsigned char>(in[i])} << (8 * i);
      in.remove_prefix(fixed);
    } else if (field.wire == 2) {
      uint64_t length;
      if (!TakeVarint(&in, &length) || length > in.size()) return std::nullopt;
      field.bytes = in.substr(0, length);
      in.remove_prefix(length);
      auto children = depth < 8 ? ParseMessage(field.bytes, depth + 1) : std::nullopt;
      if (children && !children->empty()) {
        field.children = std::move(*children);
        field.is_message = true;
      }
    } else {
      return std::nullopt;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline std::string Serialize(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    PutVarint(uint64_t{field.number} << 3 | field.wire, &out);
    const size_t fixed = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
    if (field.wire == 0) {
      PutVarint(field.value, &out);
    } else if (field.wire == 2) {
      const std::string bytes = field.is_message ? Serialize(field.children) : field.bytes;
      PutVarint(bytes.size(), &out);
      out += bytes;
    } else {
      for (size_t i = 0; i < fixed; ++i) out.push_back(static_cast<char>(field.value >> (8 * i)));
    }
  }
  return out;
}

// A field's place: the list it is in, and where there.
using Place = std::pair<std::vector<Field>*, size_t>;

inline void Collect(std::vector<Field>* fields, const std::string& path,
                    std::map<std::string, std::vector<Place>>* by_path) {
  for (size_t i = 0; i < fields->size(); ++i) {
    Field& field = (*fields)[i];
    const std::string at = path + "." + std::to_string(field.number);
    (*by_path)[at].emplace_back(fields, i);
    if (field.is_message) Collect(&field.children, at, by_path);
  }
}

inline uint64_t OtherNumber(uint64_t value, Dice* dice) {
  constexpr uint64_t kEdges[] = {
      0,          1,          2,          127,        128,           255,
      1 << 16,    1 << 20,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,    1ULL << 32,
      1ULL << 40, 1ULL << 62, 1ULL << 63, UINT64_MAX, UINT64_MAX - 1};
  switch (Below(dice, 5)) {
    case 0:
      return value + 1 + Below(dice, 4);
    case 1:
      return value - 1 - Below(dice, 4);
    case 2:
      return value ^ uint64_t { 1 } << Below(dice, 64);
    case 3:
      return (*dice)() >> Below(dice, 64);
    default:
      return kEdges[Below(dice, std::size(kEdges))];
  }
}

inline void ChangeBytes(std::string* bytes, Dice* dice) {
  switch (Below(dice, 5)) {
    case 0:
      bytes->clear();
      break;
    case 1:
      bytes->resize(Below(dice, bytes->size() + 1));
      break;
    case 2:
      bytes->append(1 + Below(dice, 64), static_cast<char>((*dice)()));
      break;
    default:
      for (uint64_t i = 1 + Below(dice, 3); i > 0 && !bytes->empty(); --i)
        (*bytes)[Below(dice, bytes->size())] = static_cast<char>((*dice)());
  }
}

// One change to one field, said in words. Fields of one kind (the path of their numbers) are as
// likely to be chosen as those of any other, however many there are.
inline std::string MutateOnce(std::vector<Field>* message, Dice* dice) {
  std::map<std::string, std::vector<Place>> by_path;
  Collect(message, "", &by_path);
  if (by_path.empty()) return "nothing to change";
  auto path = by_path.begin();
  std::advance(path, static_cast<ptrdiff_t>(Below(dice, by_path.size())));
  const auto [fields, at] = path->second[Below(dice, path->second.size())];
  Field& field = (*fields)[at];
  const std::string where = " field" + path->first;
  switch (Below(dice, 12)) {
    case 0:
      fields->erase(fields->begin() + static_cast<ptrdiff_t>(at));
      return "without" + where;
    case 1: {
      const Field copy = field;
      const uint64_t times = Below(dice, 8) == 0 ? 500 : 1;
      fields->insert(fields->begin() + static_cast<ptrdiff_t>(at), times, copy);
      return "repeated" + where;
    }
    case 2: {
      const size_t other = Below(dice, fields->size());
      std::swap((*fields)[at], (*fields)[other]);
      return "swapped" + where;
    }
    case 3:
      field.number = 1 + static_cast<uint32_t>(Below(dice, 15));
      return "renumbered" + where;
    default:
      break;
  }
  if (field.wire != 2) {
    field.value = OtherNumber(field.value, dice);
    return "changed" + where;
  }
  if (field.is_message) {
    field.bytes = Serialize(field.children);
    field.is_message = false;
  }
  ChangeBytes(&field.bytes, dice);
  return "changed bytes of" + where;
}

// The message with one to three changes; what they are is added to `said`. Bytes that are no
// message get other bytes.
inline std::string Mutate(const std::string& bytes, Dice* dice, std::string* said) {
  auto message = ParseMessage(bytes);
  if (!message) {
    std::string other = bytes;
    ChangeBytes(&other, dice);
    *said += " bytes";
    return other;
  }
  for (uint64_t i = 1 + Below(dice, 3); i > 0; --i)
    *said += " " + MutateOnce(&*message, dice) + ";";
  return Serialize(*message);
}

}  // namespace headrace::fuzz
