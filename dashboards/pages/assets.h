// The files of the pages, as they are in the executable. No address is ever opened as a file.
#pragma once
#include <string_view>

namespace headrace::dashboards {

std::string_view AppScript();   // dashboards/web bundled into one
std::string_view FileScript();  // the same without the pages that ask a server
std::string_view AppStyle();
std::string_view AppPage();  // index.html

}  // namespace headrace::dashboards
