// Parts of phases on their way between tasks.
//
//   PartBlocks saved(part.accumulators);
//   while (const auto block = saved.next()) ...             // in one task
//   add_saved_block(whole.accumulators, block, "task 1");   // in another
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "cohort/core/structure/structure.h"
#include "cohort/transform/passes/phase_part.h"

namespace cohort::internal {

// The state of accumulators as blocks of about kPieceBytes: many small pieces, or one large one.
// Until it is destroyed, the accumulators must not be changed.
class PartBlocks {
 public:
  explicit PartBlocks(Accumulators& accumulators) : accumulators_(accumulators) {}
  // The next block, which is not empty; nullopt at the end. Errors: those of SavedPieces::next.
  std::optional<std::string> next();

 private:
  Accumulators& accumulators_;
  size_t place_ = 0;
  std::unique_ptr<SavedPieces> pieces_;  // of the accumulator at place_
};

// Adds a block to accumulators of the same analyses. Errors: DataLoss (it is damaged, or of other
// analyses: names `source`), ResourceExhausted.
void add_saved_block(Accumulators& accumulators, std::string_view block, std::string_view source);

// How many bytes of a part are in its message.
inline constexpr size_t kMostBytesInMessage = size_t{4} << 20;

// A part as a message to another task, which sees `directory` under the same path: what is above
// kMostBytesInMessage is in a file there, for whoever made the directory to remove.
// Errors: those of PartBlocks::next and of writing the file.
Structure part_message(PhasePart& part, FileSystem& files, const std::string& directory);
// Adds such a part. Errors: those of add_saved_block; NotFound (there is no such file), and others
// of reading it.
void add_part_message(PhasePart& whole, const Structure& message, FileSystem& files,
                      std::string_view source);

}  // namespace cohort::internal
