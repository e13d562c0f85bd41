#include "reader/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/error.h"
#include "base/registry.h"

namespace headrace::reader {
namespace {

constexpr const char* kKindNames[] = {"boolean", "tinyint", "smallint", "int",    "bigint",
                                      "float",   "double",  "string",   "binary", "timestamp",
                                      "list",    "map",     "struct",   "union"};
constexpr uint32_t kMaxSchemaDepth = 64;

// How many children a kind takes; nothing when any number is right.
std::optional<size_t> Arity(TypeKind kind) {
  if (kind == TypeKind::kList) return 1;
  if (kind == TypeKind::kMap) return 2;
  if (kind == TypeKind::kStruct || kind == TypeKind::kUnion) return std::nullopt;
  return 0;
}

Error Bad(uint32_t id, const std::string& what) {
  return Error(ExitCode::kBadData, fmt::format("type {}: {}", id, what));
}

class TypeParser {
 public:
  explicit TypeParser(std::string_view text) : text_(text) {}

  std::vector<SchemaNode> ParseAll() {
    ParseType();
    Skip();
    if (at_ != text_.size()) Fail("expected the end");
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) {
    throw Error(ExitCode::kUsage, what,
                fmt::format("type '{}': column {}", Printable(std::string(text_), 80), at_ + 1));
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  void Expect(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) Fail(fmt::format("expected '{}'", c));
    ++at_;
  }
  bool Accept(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Word(std::string_view stop) {
    Skip();
    const size_t start = at_;
    while (at_ < text_.size() && stop.find(text_[at_]) == std::string_view::npos) ++at_;
    std::string word(text_.substr(start, at_ - start));
    while (!word.empty() && word.back() == ' ') word.pop_back();
    return word;
  }
  uint32_t ParseType() {
    const std::string word = Word("<>,:() ");
    const std::string kind_word = word == "array" ? "list" : word;
    size_t kind = 0;
    while (kind < std::size(kKindNames) && kind_word != kKindNames[kind]) ++kind;
    if (kind == std::size(kKindNames)) {
      const std::string nearest = NearestName(word, {std::begin(kKindNames), std::end(kKindNames)});
      Fail(fmt::format("unknown type '{}'{}", Printable(word, 40),
                       nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest)));
    }
    const auto id = static_cast<uint32_t>(nodes_.size());
    if (++depth_ > kMaxSchemaDepth) Fail("types are nested too deeply");
    nodes_.emplace_back();
    nodes_[id].kind = static_cast<TypeKind>(kind);
    if (nodes_[id].kind >= TypeKind::kList) {
      Expect('<');
      if (!Accept('>')) {
        do {
          std::string name;
          if (nodes_[id].kind == TypeKind::kStruct) {
            name = Word(":<>,");
            Expect(':');
          }
          const uint32_t child = ParseType();
          nodes_[id].children.push_back(child);
          if (nodes_[id].kind == TypeKind::kStruct) nodes_[id].field_names.push_back(name);
        } while (Accept(','));
        Expect('>');
      }
    }
    --depth_;
    return id;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  std::vector<SchemaNode> nodes_;
};

}  // namespace

const char* TypeKindName(TypeKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Schema::Schema(std::vector<SchemaNode> nodes) : nodes_(std::move(nodes)) {
  if (nodes_.empty()) throw Error(ExitCode::kBadData, "the schema has no types");
  if (nodes_[0].kind != TypeKind::kStruct) throw Bad(0, "the root is not a struct");
  std::vector<bool> used(nodes_.size(), false);
  std::vector<uint32_t> depth(nodes_.size(), 0);
  used[0] = true;
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    SchemaNode& node = nodes_[id];
    node.id = id;
    if (!used[id]) throw Bad(id, "is not a child of an earlier type");
    const std::optional<size_t> arity = Arity(node.kind);
    if (arity && node.children.size() != *arity)
      throw Bad(id,
                fmt::format("{} with {} children", TypeKindName(node.kind), node.children.size()));
    if (node.kind == TypeKind::kStruct && node.field_names.size() != node.children.size()) {
      throw Bad(id, fmt::format("{} field names for {} fields", node.field_names.size(),
                                node.children.size()));
    }
    for (uint32_t child : node.children) {
      if (child <= id || child >= nodes_.size() || used[child])
        throw Bad(id, fmt::format("child {} is not a later unused type", child));
      used[child] = true;
      nodes_[child].parent = id;
      depth[child] = depth[id] + 1;
      if (depth[child] > kMaxSchemaDepth) throw Bad(id, "types are nested too deeply");
    }
  }
  for (uint32_t id = size(); id-- > 0;) {
    nodes_[id].last = id;
    // Pre-order: the first child follows its parent, each next one the previous one's subtree.
    uint32_t expected = id + 1;
    for (uint32_t child : nodes_[id].children) {
      if (child != expected) throw Bad(id, "types are not in pre-order");
      expected = nodes_[child].last + 1;
      nodes_[id].last = nodes_[child].last;
    }
  }
}

Schema Schema::Parse(std::string_view text) { return Schema(TypeParser(text).ParseAll()); }

std::optional<uint32_t> Schema::FindColumn(std::string_view name) const {
  if (nodes_.empty()) return std::nullopt;
  const SchemaNode& root = nodes_[0];
  for (size_t i = 0; i < root.children.size(); ++i) {
    if (root.field_names[i] == name) return root.children[i];
  }
  const auto same_letter = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (size_t i = 0; i < root.children.size(); ++i) {
    const std::string& field = root.field_names[i];
    if (std::equal(field.begin(), field.end(), name.begin(), name.end(), same_letter))
      return root.children[i];
  }
  return std::nullopt;
}

std::string Schema::ToString(uint32_t id) const {
  const SchemaNode& node = nodes_[id];
  std::string text = TypeKindName(node.kind);
  if (node.kind < TypeKind::kList) return text;
  text += "<";
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += ",";
    if (node.kind == TypeKind::kStruct) text += node.field_names[i] + ":";
    text += ToString(node.children[i]);
  }
  return text + ">";
}

std::string Schema::Path(uint32_t id) const {
  if (id == 0) return "";
  const SchemaNode& parent = nodes_[nodes_[id].parent];
  size_t place = 0;
  while (parent.children[place] != id) ++place;
  std::string step;
  switch (parent.kind) {
    case TypeKind::kList:
      step = "element";
      break;
    case TypeKind::kMap:
      step = place == 0 ? "key" : "value";
      break;
    case TypeKind::kUnion:
      step = std::to_string(place);
      break;
    default:
      step = parent.field_names[place];
  }
  const std::string prefix = Path(parent.id);
  return prefix.empty() ? step : prefix + "." + step;
}

bool Schema::operator==(const Schema& other) const {
  if (nodes_.size() != other.nodes_.size()) return false;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind != other.nodes_[i].kind || nodes_[i].children != other.nodes_[i].children ||
        nodes_[i].field_names != other.nodes_[i].field_names)
      return false;
  }
  return true;
}

}  // namespace headrace::reader
