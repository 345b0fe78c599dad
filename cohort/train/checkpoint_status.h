// What a restore found, and what it did not.
//
//   checkpoint.restore(path).assert_existing_objects_matched();
#pragma once

#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/train/objects/trackable.h"

namespace cohort {
namespace internal {
class RestoreSession;
}

namespace train {

// Objects that are made after the restore (layers that are built by their first call, slots of an
// optimizer) get their values when they appear; ask for assertions when all are there.
// A status of a restore from nothing (no checkpoint exists) passes no assertion but the last.
// Thread safety: none.
class COHORT_API LoadStatus {
 public:
  LoadStatus(std::shared_ptr<internal::RestoreSession> session, std::shared_ptr<Trackable> root);

  // Every object with values got them, and every value in the checkpoint has its object.
  // Errors: InvalidArgument (lists all that did not).
  const LoadStatus& assert_consumed() const;
  // Every object with values got them; the checkpoint may hold more. Errors: as assert_consumed.
  const LoadStatus& assert_existing_objects_matched() const;
  // Some object of this program beside the root, and beside the checkpoint's save_counter, has its
  // place in the checkpoint. Errors: InvalidArgument (none: the checkpoint is of another program,
  // or nothing was added to the root yet).
  const LoadStatus& assert_nontrivial_match() const;
  // Part of the checkpoint is meant to stay unused: nothing will be logged about it.
  const LoadStatus& expect_partial() const;

  // The checkpoint that was restored; "" if none.
  const std::string& path() const;

 private:
  std::shared_ptr<internal::RestoreSession> session_;  // nullptr: restored from nothing
  std::shared_ptr<Trackable> root_;
};

}  // namespace train
}  // namespace cohort
