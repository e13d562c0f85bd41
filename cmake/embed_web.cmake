# Writes OUT: the functions of dashboards/pages/assets.h over the bundled SCRIPT, STYLE and PAGE.
set(text "// Generated from dashboards/web by cmake/embed_web.cmake.
#include \"dashboards/pages/assets.h\"
namespace headrace::dashboards {
")
foreach(pair AppScript=SCRIPT AppStyle=STYLE AppPage=PAGE)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 function)
  list(GET pair 1 variable)
  file(READ ${${variable}} contents)
  if(contents MATCHES "\\)__web__\"")
    message(FATAL_ERROR "${${variable}} holds the mark that ends its literal")
  endif()
  string(APPEND text "std::string_view ${function}() {
  static constexpr char kText[] = R\"__web__(${contents})__web__\";
  return {kText, sizeof kText - 1};
}
")
endforeach()
file(WRITE ${OUT} "${text}}  // namespace headrace::dashboards
")
