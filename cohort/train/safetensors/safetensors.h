// Reads and writes tensors by name in the file format of Hugging Face's libraries, to exchange
// weights.
//
//   std::map<std::string, Tensor> weights = train::load_safetensors("model.safetensors");
//   train::save_safetensors("copy.safetensors", weights);
#pragma once

#include <map>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::train {

// Reads all tensors of the file, on the CPU. Memory: that of the tensors, and the header.
// Errors: NotFound, DataLoss (damaged, or not a safetensors file: names the file, the tensor, the
// place), Unimplemented (a dtype that libtorch lacks), PermissionDenied.
COHORT_API std::map<std::string, Tensor> load_safetensors(const std::string& path);

// Replaces a file of that name in one step; when the call returns, the new file survives a crash.
// Tensors may be on any device and have any strides; elements that several tensors share are
// written for each. `metadata` is stored beside the tensors; some readers require {"format", "pt"}.
// Memory: a copy of one tensor, if it is not contiguous on the CPU.
// Errors: InvalidArgument (an undefined tensor, a dtype that the format lacks, a name that is not
// UTF-8), Unimplemented (no strides: sparse; a dtype of libtorch alone), NotFound (no such
// directory), ResourceExhausted (the disk is full), PermissionDenied, DataLoss (the disk fails).
COHORT_API void save_safetensors(const std::string& path,
                                 const std::map<std::string, Tensor>& tensors,
                                 const std::map<std::string, std::string>& metadata = {});

}  // namespace cohort::train
