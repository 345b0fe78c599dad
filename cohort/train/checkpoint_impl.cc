#include "cohort/train/checkpoint_impl.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <new>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/checkpoint_directory.h"
#include "cohort/train/checkpoint_numbers.h"
#include "cohort/train/checkpoint_restore.h"

namespace cohort::internal {
namespace {

using train::CheckpointValue;
using train::NamedObject;
using train::RestoreSource;
using train::Trackable;
using train::TrackableChild;

constexpr const char* kSaveCounter = "save_counter";

}  // namespace

std::vector<CheckpointValue> SaveCounter::checkpoint_values() {
  return {{.attribute = train::kVariableValue,
           .full_name = kSaveCounter,
           .parts = {{Leaf(at::scalar_tensor(value_, int64))}}}};
}

void SaveCounter::prepare_restore(RestoreSource& source) {
  source.read(train::kVariableValue, {}, int64,
              [this](const Tensor& value) { value_ = value.item<int64_t>(); });
}

CheckpointRoot::CheckpointRoot(std::shared_ptr<Trackable> base, std::vector<NamedObject> objects)
    : base_(std::move(base)), objects_(std::move(objects)) {
  // By name, as TensorFlow has them: objects are numbered in this order.
  std::sort(objects_.begin(), objects_.end(),
            [](const NamedObject& a, const NamedObject& b) { return a.first < b.first; });
  for (size_t i = 0; i < objects_.size(); ++i) {
    const std::string& name = objects_[i].first;
    if (name.empty()) throw InvalidArgumentError("an object of a checkpoint needs a name");
    if (name == kSaveCounter) {
      throw InvalidArgumentError(
          "'save_counter' is the checkpoint's own; name the object otherwise");
    }
    if (i > 0 && objects_[i - 1].first == name) {
      throw InvalidArgumentError(str("two objects of a checkpoint are named ", quoted(name)));
    }
  }
}

std::vector<TrackableChild> CheckpointRoot::checkpoint_children() {
  std::vector<TrackableChild> children;
  if (base_ != nullptr) children = base_->checkpoint_children();
  for (const auto& [name, object] : objects_) children.push_back({name, object.get().get()});
  if (save_counter_.exists()) children.push_back({kSaveCounter, &save_counter_});
  return children;
}

bool CheckpointRoot::has_checkpoint_values() const {
  return base_ != nullptr && base_->has_checkpoint_values();
}

std::vector<CheckpointValue> CheckpointRoot::checkpoint_values() {
  return base_->checkpoint_values();
}

void CheckpointRoot::share_position() {
  if (base_ != nullptr) RestorePosition::of(*base_) = RestorePosition::of(*this);
}

bool CheckpointRoot::awaits_children() const {
  return base_ != nullptr && base_->awaits_children();
}

void CheckpointRoot::prepare_restore(RestoreSource& source) { base_->prepare_restore(source); }

CheckpointImpl::CheckpointImpl(std::shared_ptr<Trackable> base, std::vector<NamedObject> objects)
    : root_(std::make_shared<CheckpointRoot>(std::move(base), std::move(objects))) {}

CheckpointDirectory& CheckpointImpl::directory_of(const std::string& path) {
  auto& directory = directories_[parent_directory(path)];
  if (directory == nullptr) {
    directory = CheckpointDirectory::for_writing(*files_, parent_directory(path));
  }
  return *directory;
}

void CheckpointImpl::write(const std::string& path, const train::CheckpointOptions& options,
                           std::function<void()> then) {
  if (base_name(path).empty()) {
    throw InvalidArgumentError(str("checkpoint path ", quoted(path), " has no file name"));
  }
  saver_.wait(options.timeout);
  CheckpointDirectory& directory = directory_of(path);
  Snapshot snapshot = Snapshot::take(*root_);
  const SaveTarget target{*files_, directory, path, options.timeout};
  if (!options.enable_async) return save_snapshot(target, snapshot, then);
  snapshot.detach(copied_ == nullptr ? Snapshot() : std::move(*copied_));
  copied_ = std::make_shared<Snapshot>(std::move(snapshot));
  saver_.start(path, [target, copy = copied_, then = std::move(then)] {
    save_snapshot(target, *copy, then);
  });
}

std::shared_ptr<RestoreSession> CheckpointImpl::restore_one(const std::string& path,
                                                            bool with_counter) try {
  auto session = std::make_shared<RestoreSession>(*files_, path);
  SaveCounter& counter = save_counter();
  const bool existed = counter.exists();
  counter.set_exists(with_counter);
  try {
    session->restore(*root_);
  } catch (...) {
    counter.set_exists(existed);
    session->no_warning();  // the error says it all
    throw;
  }
  const auto& position = RestorePosition::of(counter);
  const bool restored = position != nullptr && position->session == session;
  counter.set_exists(existed || restored);
  root_->share_position();
  return session;
} catch (const std::bad_alloc&) {
  throw ResourceExhaustedError(
      str("checkpoint '", path, "' cannot be restored: it takes more memory than there is"));
}

train::LoadStatus CheckpointImpl::restore(const std::string& path,
                                          const train::RestoreOptions& options) {
  saver_.wait(options.timeout);
  return {restore_or_fall_back(path, options, true), root_};
}

train::LoadStatus CheckpointImpl::read(const std::string& path,
                                       const train::RestoreOptions& options) {
  saver_.wait(options.timeout);
  return {restore_or_fall_back(path, options, false), root_};
}

std::shared_ptr<RestoreSession> CheckpointImpl::restore_or_fall_back(
    const std::string& path, const train::RestoreOptions& options, bool with_counter) {
  if (!options.fall_back) return restore_one(path, with_counter);
  std::vector<std::string> candidates = earlier_checkpoints(*files_, path);
  candidates.insert(candidates.begin(), path);
  for (size_t i = 0;; ++i) {
    const auto next = [&](const Error& error) {
      log_warning("checkpoint '", candidates[i], "' cannot be restored: ", error.what(),
                  i + 1 < candidates.size() ? str("; going back to '", candidates[i + 1], "'")
                                            : std::string("; there is no earlier one"));
      return i + 1 < candidates.size();
    };
    try {
      return restore_one(candidates[i], with_counter);
    } catch (const DataLossError& error) {
      if (!next(error)) throw;
    } catch (const NotFoundError& error) {
      if (!next(error)) throw;
    }
  }
}

}  // namespace cohort::internal
