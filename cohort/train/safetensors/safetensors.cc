#include "cohort/train/safetensors/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/safetensors/safetensors_file.h"

namespace cohort::train {
namespace {

using internal::quoted;
using internal::SafetensorsEntry;
using internal::SafetensorsHeader;
using internal::str;

void check_dtypes(const internal::SafetensorsReader& file) {
  for (const auto& [name, entry] : file.header().tensors) {
    if (internal::dtype_of(entry.type) != DType::Undefined) continue;
    throw UnimplementedError(str("'", file.path(), "': tensor ", quoted(name), " is of type ",
                                 internal::type_name(entry.type), ", which libtorch lacks"));
  }
}

// Other bytes than 0 and 1 would be undefined behaviour wherever a bool is read.
void check_bools(const Tensor& tensor, const internal::SafetensorsReader& file,
                 const std::string& name) {
  if (tensor.scalar_type() != DType::Bool) return;
  const std::string_view bytes = internal::bytes_of(tensor);
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c & ~1; });
  if (wrong == bytes.end()) return;
  throw DataLossError(str("'", file.path(), "': tensor ", quoted(name), ": element ",
                          wrong - bytes.begin(), " is no boolean but ",
                          static_cast<int>(static_cast<unsigned char>(*wrong))));
}

SafetensorsEntry entry_of(const std::string& name, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw InvalidArgumentError(str("tensor ", quoted(name), " is undefined: nothing to save"));
  }
  if (tensor.layout() != c10::kStrided) {
    throw UnimplementedError(
        str("tensor ", quoted(name), " is sparse; save to_dense(), or its indices and values"));
  }
  return {.type = internal::bundle_type(tensor.scalar_type()), .shape = tensor.sizes().vec()};
}

}  // namespace

std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  const internal::SafetensorsReader file(internal::posix_file_system().open(path), path);
  check_dtypes(file);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : file.header().tensors) {
    const Tensor tensor = at::empty(entry.shape, internal::dtype_of(entry.type));
    file.read(entry, tensor.data_ptr());
    check_bools(tensor, file, name);
    tensors.emplace(name, tensor);
  }
  return tensors;
}

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors) header.tensors.emplace(name, entry_of(name, tensor));
  internal::place_tensors(header);
  internal::SafetensorsWriter file(internal::posix_file_system(), path, header);
  for (const auto* placed : internal::in_file_order(header)) {
    const Tensor& tensor = tensors.at(placed->first);
    file.append(internal::bytes_of(internal::contiguous_elements(tensor.detach().cpu())));
  }
  file.finish();
}

}  // namespace cohort::train
