#include "cohort/train/checkpoint_impl.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <exception>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/objects/saved_objects.h"
#include "cohort/train/saving/checkpoint_directory.h"
#include "cohort/train/saving/group_contribution.h"

namespace cohort::internal {
namespace {

using train::CheckpointValue;
using train::NamedObject;
using train::RestoreSource;
using train::Trackable;
using train::TrackableChild;

bool by_name(const NamedObject& a, const NamedObject& b) { return a.first < b.first; }

// Takes the values of all members to the writer, which runs `finish` with them for all.
std::string save_together(const GroupTalk& talk, SavedObjects& objects,
                          std::chrono::milliseconds patience,
                          const std::function<std::string(Snapshot)>& finish) {
  Snapshot own;
  std::exception_ptr failed;
  try {
    const auto held = talk.group()->hold_values(talk.timeout());
    own = Snapshot::take(objects, talk.timeout());
  } catch (const std::exception&) {
    failed = std::current_exception();
  }
  const auto taken = [&]() -> const Snapshot& {
    if (failed != nullptr) std::rethrow_exception(failed);
    return own;
  };
  const std::string manifest =
      talk.tell("what the writer has", [&] { return manifest_of(taken()); });
  const MemberReplies brought = talk.collect("what the others have", [&] {
    return talk.is_writer() ? std::string() : contribution_to(manifest, taken());
  });
  return talk.tell(
      "the outcome",
      [&] {
        for (const std::string_view one : brought.all()) add_contribution(own, one);
        return finish(std::move(own));
      },
      patience);
}

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
  // The order is by name, as in TensorFlow: objects are numbered in it.
  std::sort(objects_.begin(), objects_.end(), by_name);
  check_names();
}

void CheckpointRoot::add(NamedObject object) {
  for (const auto& [name, known] : objects_) {
    if (name != object.first) continue;
    throw InvalidArgumentError(
        str("an object of the checkpoint is named ", quoted(name), " already"));
  }
  const auto place = std::upper_bound(objects_.begin(), objects_.end(), object, by_name);
  const NamedObject& added = *objects_.insert(place, std::move(object));
  child_appeared(added.first, *added.second.get());
}

void CheckpointRoot::check_names() const {
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
  if (base_ != nullptr) restore_position(*base_) = restore_position(*this);
}

bool CheckpointRoot::awaits_children() const {
  return base_ != nullptr && base_->awaits_children();
}

void CheckpointRoot::prepare_restore(RestoreSource& source) { base_->prepare_restore(source); }

std::shared_ptr<train::SaveGroup> CheckpointRoot::save_group() const {
  return base_ == nullptr ? nullptr : base_->save_group();
}

CheckpointImpl::CheckpointImpl(std::shared_ptr<Trackable> base, std::vector<NamedObject> objects)
    : root_(std::make_shared<CheckpointRoot>(std::move(base), std::move(objects))) {}

const std::shared_ptr<CheckpointDirectory>& CheckpointImpl::directory_of(const std::string& path) {
  auto& directory = directories_[parent_directory(path)];
  if (directory == nullptr) {
    directory = CheckpointDirectory::for_writing(*files_, parent_directory(path));
  }
  return directory;
}

void CheckpointImpl::leave_directories_but_of(const std::string& path) {
  std::erase_if(directories_, [&](const auto& one) { return one.first != parent_directory(path); });
}

GroupTalk CheckpointImpl::talk(std::string about, std::chrono::milliseconds timeout) {
  return {SavedObjects(*root_).save_group(), std::move(about), timeout};
}

// What the writer decides for all.
struct CheckpointImpl::Admission {
  std::string path;
  int64_t counter = 0;
  bool async = false;

  friend void fields(auto& f, Admission& admission) {
    f(1, admission.path);
    f(2, admission.counter);
    f(3, admission.async);
  }
};

// Nobody takes anything before all are here and the writer may write.
CheckpointImpl::Admission CheckpointImpl::begin(const SaveJob& job, const GroupTalk& talk,
                                                const train::CheckpointOptions& options) {
  const std::string told = talk.tell("beginning", [&] {
    const std::string path = job.begin();
    if (base_name(path).empty() || path.ends_with('/')) {
      throw InvalidArgumentError(
          str("checkpoint path ", quoted(path), " has no file name: it is the beginning of the ",
              "files' names, ", quoted(join_path(path, "ckpt")), " for example"));
    }
    directory_of(path);
    return encode_fields(Admission{path, save_counter().value(), options.enable_async});
  });
  const auto admission = decode_fields<Admission>(told, "what the group's writer saves");
  if (job.counted) save_counter().set(admission.counter);
  return admission;
}

// What every member knows of a save.
struct CheckpointImpl::Saved {
  std::string path;
  std::string told;  // by the writer, unless its thread is still at it

  friend void fields(auto& f, Saved& saved) {
    f(1, saved.path);
    f(2, saved.told);
  }
};

std::string CheckpointImpl::write(const SaveJob& job, const train::CheckpointOptions& options) {
  check_not_negative("CheckpointOptions: timeout", options.timeout);
  check_not_negative("CheckpointOptions: group_timeout", options.group_timeout);
  wait(options.timeout);
  if (job.counted) save_counter().set_exists(true);
  const int64_t counter = save_counter().value();
  bool ended_here = false;
  const auto write_again = [&] {
    if (job.counted) save_counter().set(counter);
    const Saved saved = write_once(job, options);
    ended_here = true;
    return encode_fields(saved);
  };
  const auto saved = decode_fields<Saved>(
      SavedObjects(*root_).save_group()->repeatable(write_again), "what the group has saved");
  if (!ended_here && job.learn) job.learn(saved.told);
  return saved.path;
}

CheckpointImpl::Saved CheckpointImpl::write_once(const SaveJob& job,
                                                 const train::CheckpointOptions& options) {
  SavedObjects objects(*root_);
  const GroupTalk all(objects.save_group(), "saving a checkpoint", options.group_timeout);
  const Admission admission = begin(job, all, options);
  const std::string& path = admission.path;
  const GroupTalk talk(all.group(), str("saving ", quoted(path)), options.group_timeout);

  std::function<std::string()> then;
  if (job.then) then = [job_then = job.then, path] { return job_then(path); };
  const auto save = [files = files_, timeout = options.timeout, path, then, group = all.group()](
                        CheckpointDirectory& directory, const Snapshot& values) {
    std::string told = save_snapshot({*files, directory, path, timeout}, values, then);
    group->completed(path);
    return told;
  };
  const std::string told = save_together(talk, objects, options.timeout, [&](Snapshot snapshot) {
    if (!admission.async) return save(*directory_of(path), snapshot);
    snapshot.detach(copied_ == nullptr ? Snapshot() : std::move(*copied_));
    copied_ = std::make_shared<Snapshot>(std::move(snapshot));
    background_told_ = std::make_shared<std::string>();
    saver_->start(path,
                  [directory = directory_of(path), save, copy = copied_, told = background_told_] {
                    struct End {
                      Snapshot& snapshot;
                      ~End() { snapshot.let_go_of_remote(); }
                    } const end{*copy};
                    *told = save(*directory, *copy);
                  });
    return std::string();
  });
  if (admission.async) {
    pending_.emplace(Pending{talk, job.learn});
  } else if (!talk.is_writer() && job.learn) {
    job.learn(told);
  }
  return {path, told};
}

// What the writer knows of a save that its thread is at, unless that has failed.
struct CheckpointImpl::Progress {
  std::string told;
  std::optional<std::string> still_under_way = std::nullopt;  // what to say of it

  friend void fields(auto& f, Progress& progress) {
    f(1, progress.told);
    f(2, progress.still_under_way);
  }
};

// All have asked the writer. Errors: DeadlineExceeded (somebody has not come; all may ask again).
WriterReply CheckpointImpl::ask_for_outcome(std::chrono::milliseconds timeout) {
  const auto progress = [&] {
    if (auto why = saver_->wait_for(timeout)) return encode_fields(Progress{"", std::move(why)});
    return encode_fields(Progress{*background_told_});
  };
  try {
    return pending_->talk.hear("the outcome", progress, timeout);
  } catch (const DeadlineExceededError&) {
    throw;
  } catch (...) {
    pending_.reset();
    throw;
  }
}

void CheckpointImpl::wait(std::chrono::milliseconds timeout) {
  // A save that began, but whose group was lost before all knew, is the writer's alone.
  if (!pending_) return saver_->wait(timeout);
  const WriterReply outcome = ask_for_outcome(timeout);
  const Pending asked = *std::exchange(pending_, std::nullopt);
  const auto progress =
      decode_fields<Progress>(outcome.value(), "what the group's writer has saved");
  if (progress.still_under_way) {
    pending_.emplace(asked);
    throw DeadlineExceededError(*progress.still_under_way);
  }
  if (!asked.talk.is_writer() && asked.learn && !progress.told.empty()) asked.learn(progress.told);
}

}  // namespace cohort::internal
