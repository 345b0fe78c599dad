// What stands behind a Checkpoint.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/program/process.h"
#include "cohort/train/checkpoint_status.h"
#include "cohort/train/objects/checkpoint_restore.h"
#include "cohort/train/saving/background_saver.h"
#include "cohort/train/saving/checkpoint_options.h"
#include "cohort/train/saving/checkpoint_save.h"
#include "cohort/train/saving/group_talk.h"

namespace cohort::internal {

class CheckpointDirectory;

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
  void set(int64_t value) { value_ = value; }

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
  // Errors: InvalidArgument (an object of that name is there).
  void add(train::NamedObject object);

  std::vector<train::TrackableChild> checkpoint_children() override;
  bool has_checkpoint_values() const override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  bool awaits_children() const override;
  void prepare_restore(train::RestoreSource& source) override;
  std::shared_ptr<train::SaveGroup> save_group() const override;
  // The base is where the root is: what it gets later is restored too.
  void share_position();

 private:
  void check_names() const;

  std::shared_ptr<train::Trackable> base_;
  std::vector<train::NamedObject> objects_;
  SaveCounter save_counter_;
};

// A save, by who does what of it. Any of the functions but `begin` may be missing.
struct SaveJob {
  bool counted = false;  // the save_counter changes, to what the writer has after `begin`
  std::function<std::string()> begin;  // at the writer: the path
  // At the writer, under the directory's lock, once the checkpoint is safe; perhaps on its thread.
  // Returns what the others are to be told, once the save is known to have ended well.
  std::function<std::string(const std::string& path)> then;
  std::function<void(const std::string& told)> learn;  // on the others
};

// What the members of a group do together, and how, is in checkpoint_impl.cc's functions; each step
// is collective (see GroupTalk), and a process that is alone takes the same steps.
// Thread safety: as Checkpoint.
class CheckpointImpl {
 public:
  CheckpointImpl(std::shared_ptr<train::Trackable> base, std::vector<train::NamedObject> objects);

  // Writes a checkpoint, now or by the writer's thread. Returns its path.
  std::string write(const SaveJob& job, const train::CheckpointOptions& options);
  train::LoadStatus restore(const std::optional<std::string>& path,
                            const train::RestoreOptions& options);
  train::LoadStatus read(const std::string& path, const train::RestoreOptions& options);
  void wait(std::chrono::milliseconds timeout);
  // The group of the objects that there are, to do something about `about` with.
  GroupTalk talk(std::string about, std::chrono::milliseconds timeout);

  SaveCounter& save_counter() { return root_->save_counter(); }
  // Adds an object that the checkpoint was not made with. Errors: InvalidArgument (its name is
  // taken).
  void add(train::NamedObject object) { root_->add(std::move(object)); }
  const std::shared_ptr<CheckpointRoot>& root() const { return root_; }
  // For SaveJob::begin: gives up the right to write into other directories than that of `path`,
  // which is otherwise kept as long as this lives.
  void leave_directories_but_of(const std::string& path);
  void leave_directories() { directories_.clear(); }
  FileSystem& files() const { return *files_; }
  void use(FileSystem& files) { files_ = &files; }

 private:
  struct Admission;
  struct Progress;
  // A save that the writer's thread is at.
  struct Pending {
    GroupTalk talk;
    std::function<void(const std::string& told)> learn;
  };

  struct Saved;
  Saved write_once(const SaveJob& job, const train::CheckpointOptions& options);
  Admission begin(const SaveJob& job, const GroupTalk& talk,
                  const train::CheckpointOptions& options);
  WriterReply ask_for_outcome(std::chrono::milliseconds timeout);
  train::LoadStatus restore_one_of(const std::optional<std::string>& path,
                                   const train::RestoreOptions& options, bool with_counter);
  std::shared_ptr<RestoreSession> restore_together(const std::string& path, bool with_counter,
                                                   const GroupTalk& talk);
  std::shared_ptr<RestoreSession> restore_own(const std::string& path, bool with_counter,
                                              const RestoreAgreement& agree);
  const std::shared_ptr<CheckpointDirectory>& directory_of(const std::string& path);

  std::shared_ptr<CheckpointRoot> root_;
  FileSystem* files_ = &posix_file_system();
  std::map<std::string, std::shared_ptr<CheckpointDirectory>> directories_;  // saved into
  std::shared_ptr<Snapshot> copied_;  // the latest asynchronous save's; its memory is used again
  std::shared_ptr<std::string> background_told_;  // what the writer's thread has for the others
  std::optional<Pending> pending_;
  // Last: its end waits for its thread, which uses what is above.
  HomePtr<BackgroundSaver> saver_{new BackgroundSaver};
};

}  // namespace cohort::internal
