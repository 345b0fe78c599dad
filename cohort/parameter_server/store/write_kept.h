// A ps task's part of a checkpoint.
#pragma once

#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/store/kept_message.h"

namespace cohort::internal {

// Writes the values one after another to the file, and syncs it. Where the probe is not in the
// directory, nothing is written.
// Errors: InvalidArgument (the names are not those of temporary files, or the directory is not
// absolute), those of FileSystem; no file is left then.
WriteKeptReply write_kept(FileSystem& files, const std::vector<Tensor>& values,
                          const WriteKeptRequest& request);

}  // namespace cohort::internal
