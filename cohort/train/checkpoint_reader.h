// Reads the values of a checkpoint by name, whoever wrote it: no objects of the program are needed.
//
//   const auto reader = train::load_checkpoint("training_checkpoints");   // its latest one
//   for (const auto& one : reader.variables()) std::cout << one.name << "\n";
//   weight.assign(reader.get_tensor("model/w/.ATTRIBUTES/VARIABLE_VALUE"));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {
namespace internal {
class BundleReader;
}

namespace train {

struct CheckpointVariable {
  std::string name;  // the whole key: "w/.ATTRIBUTES/VARIABLE_VALUE"
  // Missing: strings, or a dtype that libtorch lacks.
  std::optional<DType> dtype = std::nullopt;
  std::vector<int64_t> shape = {};  // of a partitioned value: of the whole

  bool operator==(const CheckpointVariable&) const = default;
};

// A handle: copies name the same open checkpoint. Its files stay open: what is read is the
// checkpoint as it was when it was opened, even if it is removed or replaced meanwhile.
// Thread safety: any thread.
class COHORT_API CheckpointReader {
 public:
  // See load_checkpoint.
  explicit CheckpointReader(const std::string& path);

  // The checkpoint's path, without the extensions of its files.
  const std::string& path() const;
  // Sorted by name. Among them is the graph of the objects, a string.
  const std::vector<CheckpointVariable>& variables() const { return variables_; }
  bool has_tensor(std::string_view name) const;
  // The caller's own, on the CPU; a partitioned value as a whole.
  // Errors: NotFound, InvalidArgument (strings), Unimplemented (a dtype that
  // libtorch lacks), DataLoss (the data is damaged).
  Tensor get_tensor(std::string_view name) const;
  // Errors: NotFound, InvalidArgument (no strings), DataLoss.
  StringTensor get_strings(std::string_view name) const;

 private:
  std::shared_ptr<const internal::BundleReader> bundle_;
  std::vector<CheckpointVariable> variables_;
};

// Opens the checkpoint `path`, or the latest one of the directory `path`.
// Errors: NotFound (no such checkpoint; a directory without one), DataLoss (the index or the
// directory's state file is damaged).
COHORT_API CheckpointReader load_checkpoint(const std::string& path);
// The variables of load_checkpoint(path).
COHORT_API std::vector<CheckpointVariable> list_variables(const std::string& path);
COHORT_API Tensor load_variable(const std::string& path, std::string_view name);

}  // namespace train
}  // namespace cohort
