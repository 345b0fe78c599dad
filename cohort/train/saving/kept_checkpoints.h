// The checkpoints that a manager keeps in its directory.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

struct KeptOptions {
  std::string directory;
  std::string name;  // of checkpoints: NAME-N
  std::optional<int> max_to_keep;
  std::optional<double> every_n_hours;
  std::function<double()> clock;  // seconds since the epoch
};

// Knows nothing of the objects that are saved: a save in the background holds on to this alone.
// Thread safety: any thread.
class KeptCheckpoints {
 public:
  // Reads what the directory's state file says. One that is damaged is an error only of those who
  // ask for the latest checkpoint, or save: see check_state.
  KeptCheckpoints(FileSystem& files, KeptOptions options);

  // Reads it again: another process has written it.
  void read_again();

  std::optional<std::string> latest() const;
  std::vector<std::string> paths() const;
  std::optional<int64_t> last_step() const;
  void set_last_step(int64_t step);

  // Errors: DataLoss (the state file is damaged).
  void check_state() const;
  // Instead of a damaged or missing state: the checkpoint with the highest number is the latest.
  void recover_by_number();

  // The list for another process's KeptCheckpoints, which is that of the same directory but writes
  // nothing. Errors of taking it: DataLoss (malformed).
  std::string format_list() const;
  void take_list(std::string_view list);

  // Makes `path`, which was written at `step`, the latest, and deletes what is beyond max_to_keep.
  // The caller holds the directory's lock. What cannot be deleted stays on the list for the next
  // time. After an error the step does not count as saved.
  void record(const std::string& path, std::optional<int64_t> step);

 private:
  struct Kept {
    std::string path;
    double saved_at = 0;  // seconds since the epoch
  };

  void recover();
  void delete_surplus();
  std::vector<Kept> take_surplus();
  void write_state() const;
  bool remove(const std::string& path) const;

  FileSystem& files_;
  const KeptOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Kept> kept_;    // oldest first
  std::optional<std::string> latest_;
  double last_preserved_ = 0;
  std::optional<int64_t> last_step_;
  std::exception_ptr state_error_;  // of the state file
};

}  // namespace cohort::internal
