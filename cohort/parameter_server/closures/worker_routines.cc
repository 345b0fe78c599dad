#include "cohort/parameter_server/closures/worker_routines.h"

#include <map>
#include <mutex>

namespace cohort::internal {
namespace {

struct Routines {
  std::mutex mutex;
  std::map<std::string, WorkerRoutine> by_name;  // guarded by mutex
};

Routines& routines() {
  static auto* const all = new Routines;  // servers may outlive static objects
  return *all;
}

}  // namespace

AddedRoutine::AddedRoutine(const char* name, WorkerRoutine routine) {
  const std::lock_guard lock(routines().mutex);
  routines().by_name.emplace(name, routine);
}

WorkerRoutine worker_routine(const std::string& name) {
  const std::lock_guard lock(routines().mutex);
  const auto found = routines().by_name.find(name);
  return found == routines().by_name.end() ? nullptr : found->second;
}

}  // namespace cohort::internal
