// A transform that is ready to be applied.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/transform/graph/evaluation.h"
#include "cohort/transform/output/transform_file.h"

namespace cohort::internal {

// Thread safety: any thread.
class AppliedTransform {
 public:
  AppliedTransform(std::string directory, ReadTransform read);
  AppliedTransform(const AppliedTransform&) = delete;
  AppliedTransform& operator=(const AppliedTransform&) = delete;

  const std::string& directory() const { return directory_; }
  const TransformGraph& graph() const { return read_.graph; }
  const AnalysisValues& values() const { return read_.values; }
  int64_t rows() const { return read_.rows; }
  uint32_t checksum() const { return read_.checksum; }
  // The value of a step that depends on statistics alone.
  ColumnValue statistic(int step) const;

  // The outputs that the columns of the batch suffice for.
  // Errors: InvalidArgument (no dict; a column that was not analysed; columns that suffice for no
  // output; a column of another type: names it), what operations throw of values.
  Structure apply(const Structure& batch) const;

 private:
  struct Outputs {
    std::vector<std::string> names;
    GraphEvaluation evaluation;
  };
  const Outputs& outputs_for(const Structure& batch) const;
  std::unique_ptr<const Outputs> make_outputs(const Structure& batch) const;

  const std::string directory_;
  const ReadTransform read_;
  mutable std::mutex mutex_;
  // One for each set of columns that was given.
  mutable std::map<std::vector<bool>, std::unique_ptr<const Outputs>> outputs_;
};

}  // namespace cohort::internal
