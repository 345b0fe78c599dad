// The header of safetensors files: which tensor of which dtype and shape lies where.
//
//   file   := length:u64 header:JSON data
//   header := {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Places count from the end of the header and follow one another without gaps or overlaps; all
// numbers are little-endian. "__metadata__" is no tensor but an object of strings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::internal {

// The largest header, which is JSON. The format allows six times as much, which nobody needs: the
// names of 100'000 tensors fit in.
inline constexpr uint64_t kMostSafetensorsHeaderBytes = uint64_t{16} << 20;

struct SafetensorsEntry {
  BundleType type = BundleType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes after the header
  uint64_t end = 0;

  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;

  bool operator==(const SafetensorsHeader&) const = default;
};

// Pointers to the tensors of a header, in the order of their places in the file.
using SafetensorsOrder = std::vector<const std::pair<const std::string, SafetensorsEntry>*>;
SafetensorsOrder in_file_order(const SafetensorsHeader& header);

// Gives every tensor its place: those of the largest elements first, so that each begins at a
// multiple of its element's size; then by name.
// Errors: InvalidArgument (a type that the format has no name for), DataLoss (as num_elements).
void place_tensors(SafetensorsHeader& header);

// Bytes of all tensors.
uint64_t data_bytes(const SafetensorsHeader& header);

// The length and the JSON, which spaces make a multiple of 8 long.
// Errors: InvalidArgument (a type that the format has no name for, a tensor named "__metadata__",
// names or metadata that are not UTF-8, longer than kMostSafetensorsHeaderBytes).
std::string format_safetensors_header(const SafetensorsHeader& header);

// `json`: the header; `data_bytes`: what the file has after it; `file`: its name in errors.
// Memory: about ten times the JSON's bytes at most.
// Errors: DataLoss (no such JSON, a name given twice, places that overlap, leave gaps, or do not
// fit the shape or the file; names the tensor), Unimplemented (a dtype of less than 8 bits or of 8
// bits with a fraction).
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           const std::string& file);

}  // namespace cohort::internal
