// What holds of every checkpoint, whatever bytes its files are made of: it is read whole and right,
// or refused with an error that names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/bundle/tensor_slice.h"
#include "tests/fuzz/input_reader.h"

namespace cohort::fuzz {

// Ends the program unless it holds.
void require(bool holds, std::string_view property);

// The numbers that the elements of `box` have in a row-major tensor of `shape`, in the order of
// the box. Small boxes only.
std::vector<size_t> places_of(const std::vector<int64_t>& shape, const train::TensorSlice& box);

// A box within a tensor of `shape`.
train::TensorSlice box_within(const std::vector<int64_t>& shape, InputReader& in);

// Opens a checkpoint, reads all of it, and compares what is read with the bytes of its files: with
// checksums taken anew and partitioned tensors put together element by element, by slower ways than
// the reader's. `in` chooses which parts of tensors are read too. Returns kOk, or the first error's
// code: DataLoss, NotFound or Unimplemented.
Code check_bundle(internal::SimulatedFileSystem& files, const std::string& prefix, InputReader& in);

}  // namespace cohort::fuzz
