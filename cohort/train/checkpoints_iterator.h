// Waits for checkpoints that another process saves: for evaluation while training goes on.
//
//   for (const std::string& path : train::checkpoints_iterator(directory, {.timeout = 10min})) {
//     try {
//       checkpoint.restore(path).expect_partial();
//     } catch (const NotFoundError&) {
//       continue;                                // deleted meanwhile by the training's manager
//     }
//     evaluate(model);
//   }
#pragma once

#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/export.h"

namespace cohort::train {

struct CheckpointsIteratorOptions {
  // The least time between two paths.
  std::chrono::milliseconds min_interval = std::chrono::milliseconds(0);
  // How long to wait for the next; missing: for ever, with a line in the log every minute.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  // Called when the timeout has passed: true ends the iteration, false continues to wait. Missing:
  // the iteration ends.
  std::function<bool()> timeout_fn = {};
  // How often to look.
  std::chrono::milliseconds poll_interval = std::chrono::milliseconds(100);
};

// Returns the path of the latest checkpoint whenever there is a new one; may skip some.
// Thread safety: none.
class COHORT_API CheckpointsIterator {
 public:
  CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options);

  // nullopt after the timeout. Errors: DataLoss (the directory's state file is damaged).
  std::optional<std::string> next();

  class Cursor {
   public:
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;

    explicit Cursor(CheckpointsIterator* iterator) : iterator_(iterator), path_(iterator->next()) {}
    const std::string& operator*() const { return *path_; }
    Cursor& operator++() {
      path_ = iterator_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !path_; }

   private:
    CheckpointsIterator* iterator_;
    std::optional<std::string> path_;
  };
  Cursor begin() { return Cursor(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<std::string> wait_for_another();
  std::optional<std::string> look();

  std::string directory_;
  CheckpointsIteratorOptions options_;
  std::optional<std::string> latest_;
  std::string problem_;  // of the directory, when it was last looked at
  std::optional<Clock::time_point> given_at_;
};

COHORT_API CheckpointsIterator checkpoints_iterator(std::string directory,
                                                    CheckpointsIteratorOptions options = {});

}  // namespace cohort::train
