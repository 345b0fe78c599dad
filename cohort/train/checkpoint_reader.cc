#include "cohort/train/checkpoint_reader.h"

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/missing_checkpoint.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/checkpoint.h"

namespace cohort::train {
namespace {

using internal::BundleEntry;
using internal::BundleReader;
using internal::BundleType;
using internal::str;

// `path`, or the latest checkpoint of that directory.
std::string prefix_of(const std::string& path) {
  if (internal::posix_file_system().exists(internal::bundle_index_path(path))) return path;
  if (const auto latest = latest_checkpoint(path)) return *latest;
  throw NotFoundError(internal::describe_missing_checkpoint(internal::posix_file_system(), path));
}

const BundleEntry& entry_of(const BundleReader& bundle, std::string_view name) {
  if (bundle.contains(name)) return bundle.entry(name);
  const std::string value = str(name, "/.ATTRIBUTES/", kVariableValue);
  const std::string advice = bundle.contains(value)
                                 ? str("; its value is ", internal::quoted(value))
                                 : std::string("; variables() lists those that it has");
  throw NotFoundError(str("checkpoint ", internal::quoted(bundle.prefix()), " has no tensor ",
                          internal::quoted(name), advice));
}

}  // namespace

CheckpointReader::CheckpointReader(const std::string& path)
    : bundle_(
          std::make_shared<const BundleReader>(internal::posix_file_system(), prefix_of(path))) {
  for (const auto& [name, entry] : bundle_->entries()) {
    CheckpointVariable& variable =
        variables_.emplace_back(CheckpointVariable{.name = name, .shape = entry.shape});
    const DType dtype = internal::dtype_of(entry.type);
    if (dtype != DType::Undefined) variable.dtype = dtype;
  }
}

const std::string& CheckpointReader::path() const { return bundle_->prefix(); }

bool CheckpointReader::has_tensor(std::string_view name) const { return bundle_->contains(name); }

Tensor CheckpointReader::get_tensor(std::string_view name) const {
  const BundleEntry& entry = entry_of(*bundle_, name);
  if (entry.type == BundleType::kString) {
    throw InvalidArgumentError(
        str("checkpoint value ", internal::quoted(name), " has strings; get_strings reads them"));
  }
  const DType dtype = internal::dtype_of(entry.type);
  if (dtype == DType::Undefined) {
    throw UnimplementedError(str("checkpoint value ", internal::quoted(name), " is of type ",
                                 internal::type_name(entry.type), ", which libtorch lacks"));
  }
  const Tensor value = internal::empty_for_reading(entry.shape, dtype);
  bundle_->read(name, value.data_ptr());
  return value;
}

StringTensor CheckpointReader::get_strings(std::string_view name) const {
  const BundleEntry& entry = entry_of(*bundle_, name);
  return StringTensor(bundle_->read_strings(name), entry.shape);
}

CheckpointReader load_checkpoint(const std::string& path) { return CheckpointReader(path); }

std::vector<CheckpointVariable> list_variables(const std::string& path) {
  return load_checkpoint(path).variables();
}

Tensor load_variable(const std::string& path, std::string_view name) {
  return load_checkpoint(path).get_tensor(name);
}

}  // namespace cohort::train
