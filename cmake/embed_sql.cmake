# Writes OUT: the functions of collectors/store/embedded_sql.h over the .sql FILES, sorted by name.
list(SORT FILES)
set(schema "")
set(views "")
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  get_filename_component(stem ${file} NAME_WE)
  if(file MATCHES "/schema/")
    string(APPEND schema "    {\"${stem}\", R\"__sql__(${text})__sql__\"},\n")
  else()
    string(APPEND views "    {\"${stem}\", R\"__sql__(${text})__sql__\"},\n")
  endif()
endforeach()
file(WRITE ${OUT} "// Generated from collectors/store/**/*.sql by cmake/embed_sql.cmake.
#include \"collectors/store/embedded_sql.h\"
namespace headrace::collectors {
const std::vector<SqlFile>& SchemaFiles() {
  static const std::vector<SqlFile> files = {\n${schema}  };
  return files;
}
const std::vector<SqlFile>& ViewFiles() {
  static const std::vector<SqlFile> files = {\n${views}  };
  return files;
}
}  // namespace headrace::collectors
")
