// The directory in which an output is made, beside its final place.
#pragma once

#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/passes/analyses_run.h"

namespace cohort::internal {

// What is not published goes with it.
class Workplace {
 public:
  // Errors: AlreadyExists (there is an output that is not to be replaced), those of FileSystem.
  Workplace(FileSystem& files, const std::string& output_directory, bool overwrite);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::string& path() const { return path_; }
  // The folders of the workplace whose path() is `path`, also in another task.
  static std::string assets(const std::string& path);
  static std::string spill(const std::string& path);

  // Replaces the output at once.
  void publish(const TransformGraph& graph, const AnalysesRun& run);

 private:
  FileSystem& files_;
  const std::string output_;
  std::string path_;
};

}  // namespace cohort::internal
