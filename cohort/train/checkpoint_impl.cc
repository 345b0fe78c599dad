#include "cohort/train/checkpoint_impl.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <charconv>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle_entry.h"
#include "cohort/train/checkpoint_directory.h"
#include "cohort/train/checkpoint_restore.h"

namespace cohort::internal {
namespace {

using train::CheckpointValue;
using train::NamedObject;
using train::RestoreSource;
using train::Trackable;
using train::TrackableChild;

constexpr const char* kSaveCounter = "save_counter";

// Splits "ckpt-12" into "ckpt-" and 12; false if it ends in no number.
bool split_number(std::string_view name, std::string_view& base, int64_t& number) {
  const size_t dash = name.rfind('-');
  if (dash == name.npos || dash + 1 == name.size()) return false;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dash + 1, end, number);
  base = name.substr(0, dash + 1);
  return error == std::errc() && stop == end && number >= 0;
}

}  // namespace

std::vector<CheckpointValue> SaveCounter::checkpoint_values() {
  return {{.attribute = train::kVariableValue,
           .full_name = kSaveCounter,
           .parts = {{Leaf(at::scalar_tensor(value_, int64))}}}};
}

void SaveCounter::prepare_restore(RestoreSource& source) {
  const Tensor value = source.read(train::kVariableValue, {}, int64);
  source.on_commit([this, value] { value_ = value.item<int64_t>(); });
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
      throw InvalidArgumentError("'save_counter' is the checkpoint's own; name the object otherwise");
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
  if (!options.enable_async) return save_snapshot(*files_, directory, path, snapshot, then);
  snapshot.detach(copied_ == nullptr ? Snapshot() : std::move(*copied_));
  copied_ = std::make_shared<Snapshot>(std::move(snapshot));
  saver_.start(path, [files = files_, &directory, path, copy = copied_, then = std::move(then)] {
    save_snapshot(*files, directory, path, *copy, then);
  });
}

std::shared_ptr<RestoreSession> CheckpointImpl::restore_one(const std::string& path) {
  auto session = std::make_shared<RestoreSession>(*files_, path);
  SaveCounter& counter = save_counter();
  const bool existed = counter.exists();
  counter.set_exists(true);
  try {
    session->restore(*root_);
  } catch (...) {
    counter.set_exists(existed);
    throw;
  }
  const auto& position = RestorePosition::of(counter);
  const bool restored = position != nullptr && position->session == session;
  counter.set_exists(existed || restored);
  return session;
}

train::LoadStatus CheckpointImpl::restore(const std::string& path,
                                          const train::RestoreOptions& options) {
  saver_.wait(train::CheckpointOptions().timeout);
  if (!options.fall_back) return {restore_one(path), root_};
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
      return {restore_one(candidates[i]), root_};
    } catch (const DataLossError& error) {
      if (!next(error)) throw;
    } catch (const NotFoundError& error) {
      if (!next(error)) throw;
    }
  }
}

std::vector<std::string> earlier_checkpoints(FileSystem& files, const std::string& path) {
  constexpr std::string_view kSuffix = ".index";
  const std::string name = base_name(path);
  std::string_view base;
  int64_t number = 0;
  if (!split_number(name, base, number)) return {};
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& entry : files.list(parent_directory(path))) {
    if (!entry.ends_with(kSuffix)) continue;
    const std::string_view other = std::string_view(entry).substr(0, entry.size() - kSuffix.size());
    std::string_view other_base;
    int64_t other_number = 0;
    if (!split_number(other, other_base, other_number)) continue;
    if (other_base == base && other_number < number) found.emplace_back(other_number, other);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (const auto& [unused, other] : found) {
    paths.push_back(join_path(parent_directory(path), other));
  }
  return paths;
}

}  // namespace cohort::internal
