// `cohort vocabulary ...`: the indices by which lookup layers and tables map large vocabularies.
//
// Each command writes its result to `out` and returns the program's exit code. Paths are written as
// printable() makes them.
// Errors: NotFound, PermissionDenied, InvalidArgument (a delimiter that is not one character).
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tools/exit_codes.h"

namespace cohort::tools {

struct VocabularyCommandOptions {
  std::vector<std::string> paths;                // of the texts
  std::optional<int64_t> column = std::nullopt;  // the token's; nothing: the whole line
  std::string delimiter = "\t";
  int threads = 0;  // 0: as many as there are cores to use
};

// Builds the indices that are missing, or of another text, whatever the texts' sizes.
// Errors: also those of the texts: InvalidArgument (a token twice, an empty line);
// ResourceExhausted, PermissionDenied (an index can be written nowhere).
int index_vocabularies(const VocabularyCommandOptions& options, std::ostream& out);

// Reads texts and indices whole. kExitBadData: an index is missing, damaged, or of another text.
int verify_vocabularies(const VocabularyCommandOptions& options, std::ostream& out);

}  // namespace cohort::tools
