// The training program that the fault tests stop, starve and kill: two objects that always hold one
// value, so that a mix of two checkpoints shows.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <optional>
#include <string>

namespace cohort::faults {

struct SaveOptions {
  enum class How {
    kSave,
    kOverwrite,  // writes the path that it restored once more
    kManager,    // with a manager that keeps one checkpoint, and so deletes the one before
  };

  std::string directory;
  float value = 0;
  How how = How::kSave;
  bool again = false;  // this process has saved there before, and holds the directory
  bool async = false;
  bool big = false;  // 36 MB: written past the page cache, by a thread
  std::optional<rlim_t> most_file_bytes = std::nullopt;  // RLIMIT_FSIZE
  // Called when all is ready for the save that the test is about.
  std::function<void()> ready = [] {};
};

// All print what they did in one line.

// Restores the latest checkpoint if there is one, changes the value, saves: "saved PATH".
void save(const SaveOptions& options);
// Saves, is ready once more, then holds the directory until stdin ends.
void hold(const SaveOptions& options);
// Restores the latest checkpoint: "value 2", or "none". Errors: Internal (the objects differ).
void check(const std::string& directory, bool big);
// Restores `prefix`: "restored" or "DATA_LOSS: text", milliseconds, and by how many KiB the memory
// grew beyond what the process had. Errors: Internal (a failed restore changed an object).
void measure_restore(const std::string& prefix);

}  // namespace cohort::faults
