#include "cohort/cluster/launch/process_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "cohort/core/text.h"

namespace cohort::internal {

bool group_lives(pid_t group) {
  const std::string its_number = decimal_digits(group);
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry->path() / "stat");
    std::string line;
    std::getline(file, line);  // "4711 (a name) S 1 4711 ...", and a name may hold anything
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;  // it has ended meanwhile
    const std::vector<std::string_view> fields =  // its state, parent, group ...
        split_words(std::string_view(line).substr(name_end + 1));
    if (fields.size() > 2 && fields[2] == its_number && fields[0] != "Z" && fields[0] != "X") {
      return true;
    }
  }
  return false;
}

}  // namespace cohort::internal
