# Writes OUT: the functions of dashboards/pages/assets.h over the bundled SCRIPT, FILE_SCRIPT, STYLE and PAGE, which the executable carries
# compressed: a third of their size.
set(code "// Generated from dashboards/web by cmake/embed_web.cmake.
#include \"base/gzip.h\"
#include \"dashboards/pages/assets.h\"
")
set(functions "")
foreach(pair AppScript=SCRIPT FileScript=FILE_SCRIPT AppStyle=STYLE AppPage=PAGE)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 function)
  list(GET pair 1 variable)
  set(member ${OUT}.${function}.gz)
  execute_process(COMMAND gzip -9 -n -c ${${variable}} OUTPUT_FILE ${member} COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND code "asm(\".pushsection .rodata\\n.balign 16\\n.globl hr_${function}\\nhr_${function}:\\n.incbin \\\"${member}\\\"\\n.globl hr_${function}_end\\nhr_${function}_end:\\n.byte 0\\n.popsection\\n\");
extern \"C\" const char hr_${function}[], hr_${function}_end[];
")
  string(APPEND functions "std::string_view ${function}() {
  static const std::string text = Gunzipped({hr_${function}, hr_${function}_end});
  return text;
}
")
endforeach()
file(WRITE ${OUT} "${code}namespace headrace::dashboards {
${functions}}  // namespace headrace::dashboards
")
