// `cohort checkpoint ...`: looks at checkpoints without the program that wrote them, and without
// libtorch.
//
// Each command writes its result to `out` and returns the program's exit code; one that can do
// nothing at all throws. PATH is a checkpoint's prefix ("dir/ckpt-3", also with ".index"), or a
// directory of checkpoints where that is said. Names from files are written as printable() makes
// them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "tools/exit_codes.h"

namespace cohort::tools {

struct LsOptions {
  std::string path;       // or a directory
  bool raw_keys = false;  // as they stand in the file
  bool json = false;
};
// The checkpoints of a directory, or the tensors of a checkpoint.
// Errors: NotFound (also: a directory without checkpoints), as BundleReader (of one checkpoint; in
// a directory, damaged ones are listed as such and make the exit code kExitBadData).
int list_checkpoints(internal::FileSystem& files, const LsOptions& options, std::ostream& out);

struct ShowOptions {
  std::string path;
  std::string key = "";  // empty: the graph of objects
  uint64_t max_elements = 100;
};
// The graph of objects as a tree, or a tensor's values.
// Errors: NotFound (also: no such tensor), Unimplemented (a dtype without a layout known), as
// BundleReader, parse_object_graph.
int show_checkpoint(internal::FileSystem& files, const ShowOptions& options, std::ostream& out);

struct VerifyOptions {
  std::string path;  // or a directory
};
// Reads all of a checkpoint, or of every checkpoint of a directory, and lists what is damaged.
// Errors: NotFound (also: a directory without checkpoints), as FileSystem's; no DataLoss.
int verify_checkpoints(internal::FileSystem& files, const VerifyOptions& options,
                       std::ostream& out);

struct DiffOptions {
  std::string a;
  std::string b;
  double tolerance = 0;  // numbers that are no further apart count as equal
};
// What two checkpoints' tensors differ by; their graphs of objects are not compared. NaN equals
// NaN. Memory: two tensors. Errors: as BundleReader.
int diff_checkpoints(internal::FileSystem& files, const DiffOptions& options, std::ostream& out);

struct ExportOptions {
  std::string path;
  std::string output;                   // a safetensors file, replaced in one step
  std::vector<std::string> globs = {};  // of readable names; empty: all
};
// Writes the tensors, by their readable names, as safetensors; says which it had to leave out.
// Memory: one tensor. Errors: NotFound (also: nothing to export), as BundleReader,
// SafetensorsWriter.
int export_checkpoint(internal::FileSystem& files, const ExportOptions& options, std::ostream& out);

}  // namespace cohort::tools
