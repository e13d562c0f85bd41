// Params: the named values a transform is built from, with checked access. What pipeline.toml says
// under [[transform]] besides output, op and inputs arrives here.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::reader {

using ParamValue =
    std::variant<bool, int64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string>>;
using ParamMap = std::map<std::string, ParamValue>;

// The value as pipeline.toml would spell it: 7, 0.5, "text", [1, 2].
std::string ParamText(const ParamValue& value);

// Read-only, immutable. A getter with a fallback returns it when the parameter is absent; one
// without throws. All throw Error kUsage naming operator and parameter when the type does not fit;
// an integer is accepted where a real is asked for.
class Params {
 public:
  // `op` and `where` are for messages. `seed` is the pipeline's; random transforms start from it.
  Params(std::string op, ParamMap values, uint64_t seed = 0, std::string where = {})
      : op_(std::move(op)), values_(std::move(values)), seed_(seed), where_(std::move(where)) {}

  bool Has(std::string_view name) const { return values_.count(std::string(name)) != 0; }
  int64_t Integer(const std::string& name) const;
  int64_t Integer(const std::string& name, int64_t fallback) const;
  double Real(const std::string& name) const;
  double Real(const std::string& name, double fallback) const;
  // A real rounded to float, which must be finite.
  float Float(const std::string& name) const;
  float Float(const std::string& name, float fallback) const;
  std::string Text(const std::string& name) const;
  std::string Text(const std::string& name, const std::string& fallback) const;
  bool Flag(const std::string& name, bool fallback) const;
  std::vector<int64_t> Integers(const std::string& name) const;
  std::vector<double> Reals(const std::string& name) const;

  // Throws Error kUsage "op: parameter 'name' must ..." unless `holds`. `must` reads on after
  // "must": "be positive".
  void Require(bool holds, const std::string& name, const std::string& must) const;

  uint64_t seed() const { return seed_; }
  const std::string& op() const { return op_; }
  const std::string& where() const { return where_; }
  const ParamMap& values() const { return values_; }

 private:
  const ParamValue* Find(const std::string& name) const;
  const ParamValue& Required(const std::string& name) const;
  [[noreturn]] void WrongType(const std::string& name, const char* expected) const;

  std::string op_;
  ParamMap values_;
  uint64_t seed_;
  std::string where_;
};

}  // namespace headrace::reader
