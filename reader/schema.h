// Schema: an immutable tree of typed nodes. A node's id is its place in depth-first pre-order, root
// = 0, which is also its DWRF node id. The root is a struct whose fields are the table's columns.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::reader {

// Numbers are DWRF's Type.Kind.
enum class TypeKind : uint8_t {
  kBoolean = 0,
  kByte,
  kShort,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kString,
  kBinary,
  kTimestamp,
  kList,
  kMap,
  kStruct,
  kUnion,
};
const char* TypeKindName(TypeKind kind);  // "boolean", "tinyint", "smallint", "int", "bigint",
                                          // "float", ... "array" is "list"
inline bool IsInteger(TypeKind k) { return k >= TypeKind::kByte && k <= TypeKind::kLong; }

struct SchemaNode {
  TypeKind kind = TypeKind::kStruct;
  uint32_t id = 0;
  uint32_t parent = 0;                   // the root is its own parent
  uint32_t last = 0;                     // largest id of its subtree: descendants are id+1..last
  std::vector<uint32_t> children;        // node ids; map: key, value; list: element
  std::vector<std::string> field_names;  // struct only, parallel to children
};

class Schema {
 public:
  Schema() = default;
  // Nodes in pre-order with kind, children and field_names set; ids, parents and `last` are filled
  // in. Throws Error kBadData unless the children form one tree in pre-order (each id used once,
  // greater than its parent's), arities fit the kinds, and depth is at most 64.
  explicit Schema(std::vector<SchemaNode> nodes);
  // "struct<id:int,map1:map<int,list<float>>>". Throws Error kUsage with the column of the mistake.
  static Schema Parse(std::string_view text);

  const SchemaNode& node(uint32_t id) const { return nodes_[id]; }
  const SchemaNode& root() const { return nodes_[0]; }
  const std::vector<SchemaNode>& nodes() const { return nodes_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  // Node id of a top-level column: exact name first, then the first case-insensitive match.
  std::optional<uint32_t> FindColumn(std::string_view name) const;
  std::vector<std::string> ColumnNames() const {
    return nodes_.empty() ? std::vector<std::string>() : nodes_[0].field_names;
  }
  // Parse's text form.
  std::string ToString(uint32_t id = 0) const;
  // "map1.value.element"; the root is "".
  std::string Path(uint32_t id) const;
  bool operator==(const Schema& other) const;

 private:
  std::vector<SchemaNode> nodes_;
};

}  // namespace headrace::reader
