// What callbacks take from the logs by name, and add to them.
#pragma once

#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace cohort::internal {

struct LogRead {
  std::string name;  // "val_loss"
  std::string use;   // "file name 'run/{val_loss}'"
  // Among the logs after steps, which have numbers of training alone; else among an epoch's.
  bool after_steps = false;
  // The callback fails without it; else it does nothing, and says so.
  bool is_required = false;
};

// The numbers that `callback`, of the library's own class `Own`, adds to an epoch's logs; nullopt
// for a class derived from it, which may add more.
template <class Own>
std::optional<std::vector<std::string>> added_by(const Own& callback,
                                                 std::vector<std::string> names = {}) {
  if (typeid(callback) != typeid(Own)) return std::nullopt;
  return names;
}

}  // namespace cohort::internal
