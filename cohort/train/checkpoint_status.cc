#include "cohort/train/checkpoint_status.h"

#include "cohort/core/error.h"
#include "cohort/train/objects/checkpoint_restore.h"

namespace cohort::train {
namespace {

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "\n  " + name;
  return text;
}

}  // namespace

LoadStatus::LoadStatus(std::shared_ptr<internal::RestoreSession> session,
                       std::shared_ptr<Trackable> root)
    : session_(std::move(session)), root_(std::move(root)) {}

const LoadStatus& LoadStatus::assert_existing_objects_matched() const {
  if (session_ == nullptr) {
    throw InvalidArgumentError("nothing was restored: there was no checkpoint");
  }
  session_->no_warning();
  const std::vector<std::string> missing = session_->objects_without_values(*root_);
  if (missing.empty()) return *this;
  throw InvalidArgumentError(internal::str("checkpoint '", path(), "' has no values for ",
                                           missing.size(),
                                           " objects of this program:", list(missing)));
}

const LoadStatus& LoadStatus::assert_consumed() const {
  assert_existing_objects_matched();
  const std::vector<std::string> unused = session_->values_without_object();
  if (unused.empty()) return *this;
  throw InvalidArgumentError(
      internal::str("checkpoint '", path(), "' has ", unused.size(),
                    " values that no object of this program took:", list(unused)));
}

const LoadStatus& LoadStatus::assert_nontrivial_match() const {
  if (session_ == nullptr) {
    throw InvalidArgumentError("nothing was restored: there was no checkpoint");
  }
  if (session_->has_match_below(*root_)) return *this;
  const std::vector<std::string> missing = session_->objects_without_values(*root_);
  throw InvalidArgumentError(
      internal::str("nothing of this program but the root is in checkpoint '", path(), "': ",
                    missing.empty() ? "no objects were added to the root yet"
                                    : internal::str("it has no values for", list(missing))));
}

const LoadStatus& LoadStatus::expect_partial() const {
  if (session_ != nullptr) session_->no_warning();
  return *this;
}

const std::string& LoadStatus::path() const {
  static const std::string none;
  return session_ == nullptr ? none : session_->prefix();
}

}  // namespace cohort::train
