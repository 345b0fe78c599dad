// What stands behind a Checkpoint.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/file_system.h"
#include "cohort/train/background_saver.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_save.h"

namespace cohort::internal {

class CheckpointDirectory;
class RestoreSession;

// How often a checkpoint was saved: the child "save_counter" of its root.
class SaveCounter final : public train::Trackable {
 public:
  int64_t value() const { return value_; }
  int64_t next() {
    exists_ = true;
    return ++value_;
  }
  // There is none, to a checkpoint that only ever used `write`.
  bool exists() const { return exists_; }
  void set_exists(bool exists) { exists_ = exists; }

  bool has_checkpoint_values() const override { return exists_; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  int64_t value_ = 0;
  bool exists_ = false;
};

// The root: named objects beside the children of an object of the user's, if there is one.
class CheckpointRoot final : public train::Trackable {
 public:
  CheckpointRoot(std::shared_ptr<train::Trackable> base, std::vector<train::NamedObject> objects);

  SaveCounter& save_counter() { return save_counter_; }

  std::vector<train::TrackableChild> checkpoint_children() override;
  bool has_checkpoint_values() const override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  bool awaits_children() const override;
  void prepare_restore(train::RestoreSource& source) override;
  // The base is where the root is: what it gets later is restored too.
  void share_position();

 private:
  std::shared_ptr<train::Trackable> base_;
  std::vector<train::NamedObject> objects_;
  SaveCounter save_counter_;
};

// Thread safety: as Checkpoint.
class CheckpointImpl {
 public:
  CheckpointImpl(std::shared_ptr<train::Trackable> base, std::vector<train::NamedObject> objects);

  // Writes `path`, now or by the thread; then, under the directory's lock, runs `then`.
  void write(const std::string& path, const train::CheckpointOptions& options,
             std::function<void()> then);
  train::LoadStatus restore(const std::string& path, const train::RestoreOptions& options);
  train::LoadStatus read(const std::string& path, const train::RestoreOptions& options);
  void wait(std::chrono::milliseconds timeout) { saver_.wait(timeout); }

  SaveCounter& save_counter() { return root_->save_counter(); }
  const std::shared_ptr<CheckpointRoot>& root() const { return root_; }
  FileSystem& files() const { return *files_; }
  void use(FileSystem& files) { files_ = &files; }

 private:
  std::shared_ptr<RestoreSession> restore_or_fall_back(const std::string& path,
                                                       const train::RestoreOptions& options,
                                                       bool with_counter);
  std::shared_ptr<RestoreSession> restore_one(const std::string& path, bool with_counter);
  CheckpointDirectory& directory_of(const std::string& path);

  std::shared_ptr<CheckpointRoot> root_;
  FileSystem* files_ = &posix_file_system();
  std::map<std::string, std::shared_ptr<CheckpointDirectory>> directories_;  // saved into
  std::shared_ptr<Snapshot> copied_;  // the latest asynchronous save's; its memory is used again
  BackgroundSaver saver_;  // last: its thread uses what is above
};

// See train::latest_checkpoint.
std::optional<std::string> find_latest(FileSystem& files, const std::string& directory,
                                       const train::LatestOptions& options = {});

}  // namespace cohort::internal
