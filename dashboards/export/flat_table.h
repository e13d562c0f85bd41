// FlatBuffers' binary format, written without generated code, as far as the headers of Arrow need
// it: tables of scalars, texts, tables, and vectors of tables or of structs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::dashboards {

// One table. Slots are the numbers of a schema's fields, from 0; a slot that is not set has the
// schema's default.
class FlatTable {
 public:
  FlatTable& Scalar(uint16_t slot, uint8_t size_bytes, int64_t value);
  FlatTable& Text(uint16_t slot, std::string_view text);
  FlatTable& Table(uint16_t slot, FlatTable table);
  FlatTable& Tables(uint16_t slot, std::vector<FlatTable> tables);
  // A vector of structs: `bytes` are `count` of them, aligned to 8.
  FlatTable& Structs(uint16_t slot, uint32_t count, std::string bytes);

  // The buffer whose root is this table, padded to a multiple of 8 bytes.
  std::string Finish() const;

 private:
  struct StructVector {
    uint32_t count = 0;
    std::string bytes;
  };
  struct Slot {
    uint16_t slot = 0;
    uint8_t size_bytes = 4;  // of what lies in the table: a scalar, or the offset to the rest
    std::variant<int64_t, std::string, std::vector<FlatTable>, StructVector> value{};
    bool is_vector = false;  // of the tables: one is a table by itself otherwise
  };

  size_t Write(std::string* out) const;
  static size_t WriteValue(const Slot& slot, std::string* out);

  std::vector<Slot> slots_;
};

}  // namespace headrace::dashboards
