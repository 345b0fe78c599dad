#include "cohort/cluster/launch/process_group.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace cohort::internal {

bool group_lives(pid_t group) {
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
    std::istringstream fields(line.substr(name_end + 1));
    char state = 'X';
    pid_t parent = 0;
    pid_t its_group = 0;
    if (fields >> state >> parent >> its_group && its_group == group && state != 'Z' &&
        state != 'X') {
      return true;
    }
  }
  return false;
}

}  // namespace cohort::internal
