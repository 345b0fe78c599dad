// A file that is in memory alone: it goes with the process that made it, however that ends.
//
//   const MemoryFile key("worker-0.key", pem);
//   start_task("KEY_FILE=" + key.path());      // it opens the path as that of any file
#pragma once

#include <string>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Thread safety: any thread, once it is made.
class MemoryFile {
 public:
  // `name` is for those who look at the process's descriptors. Nobody changes the file any more.
  // Errors: ResourceExhausted (no memory, no descriptor).
  MemoryFile(const std::string& name, const std::string& bytes);

  // Other processes of this user and host, too, read the file by it until this object goes.
  const std::string& path() const { return path_; }

 private:
  UniqueFd fd_;
  std::string path_;
};

}  // namespace cohort::internal
