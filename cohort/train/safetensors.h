// Tensors by name in a file that Hugging Face's libraries read: for handing weights on.
//
//   std::map<std::string, Tensor> weights = train::load_safetensors("model.safetensors");
//   train::save_safetensors("copy.safetensors", weights);
#pragma once

#include <map>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::train {

// All tensors of the file, on the CPU. Memory: that of the tensors, and the header.
// Errors: NotFound, DataLoss (damaged or no safetensors file: the file, the tensor, the place),
// Unimplemented (a dtype that libtorch lacks), PermissionDenied.
COHORT_API std::map<std::string, Tensor> load_safetensors(const std::string& path);

// Replaces a file of that name in one step, after which it is safe from a crash. Tensors may lie on
// any device and have any strides; elements that several share are written for each. `metadata`:
// what readers of the file find beside the tensors; {"format", "pt"} is what some of them ask for.
// Memory: a copy of one tensor, where it is not contiguous on the CPU.
// Errors: InvalidArgument (an undefined tensor, a dtype that the format lacks, a name that is not
// UTF-8), Unimplemented (no strides: sparse; a dtype of libtorch alone), NotFound (no such
// directory), ResourceExhausted (the disk is full), PermissionDenied, DataLoss (the disk fails).
COHORT_API void save_safetensors(const std::string& path,
                                 const std::map<std::string, Tensor>& tensors,
                                 const std::map<std::string, std::string>& metadata = {});

}  // namespace cohort::train
