# Writes OUT: BuiltInModels() of workloads/spec.h over the .toml FILES, sorted by name.
list(SORT FILES)
set(entries "")
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  get_filename_component(stem ${file} NAME_WE)
  string(APPEND entries "    {\"${stem}\", R\"__toml__(${text})__toml__\"},\n")
endforeach()
file(WRITE ${OUT} "// Generated from workloads/*.toml by workloads/embed_models.cmake.
#include \"workloads/spec.h\"
namespace headrace::workloads {
const std::map<std::string, std::string, std::less<>>& BuiltInModels() {
  static const std::map<std::string, std::string, std::less<>> models = {\n${entries}  };
  return models;
}
}  // namespace headrace::workloads
")
