#include "cohort/train/checkpoint_manager.h"

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/objects/saved_objects.h"
#include "cohort/train/saving/checkpoint_directory.h"
#include "cohort/train/saving/kept_checkpoints.h"

namespace cohort::internal {

// Thread safety: as CheckpointManager.
class CheckpointManagerImpl {
 public:
  // `clock`: seconds since the epoch.
  CheckpointManagerImpl(train::Checkpoint checkpoint, std::string directory,
                        train::CheckpointManagerOptions options, std::function<double()> clock);

  std::optional<std::string> save(const train::ManagerSaveOptions& options);
  std::optional<std::string> restore_or_initialize(const train::RestoreOptions& options);

  const std::string& directory() const { return directory_; }
  const train::Checkpoint& checkpoint() const { return checkpoint_; }
  const train::CheckpointManagerOptions& options() const { return options_; }
  const KeptCheckpoints& kept() const { return *kept_; }

 private:
  std::shared_ptr<train::SaveGroup> group() const;
  std::optional<std::string> restore_latest(const train::RestoreOptions& options);
  std::optional<std::string> agree_on_latest(const train::RestoreOptions& options);
  void warn_of_another_writer() const;
  bool is_due(int64_t step, bool check_interval) const;
  std::optional<int64_t> step() const;

  const train::Checkpoint checkpoint_;
  const std::string directory_;
  const train::CheckpointManagerOptions options_;
  const std::shared_ptr<KeptCheckpoints> kept_;
};

namespace {

train::CheckpointManagerOptions checked(train::CheckpointManagerOptions options) {
  if (options.max_to_keep && *options.max_to_keep < 1) {
    throw InvalidArgumentError(str("CheckpointManager: max_to_keep is ", *options.max_to_keep,
                                   "; it must be positive, or missing to keep all"));
  }
  if (options.checkpoint_interval && !options.step_counter) {
    throw InvalidArgumentError(
        "CheckpointManager: checkpoint_interval counts steps, so step_counter must be given too");
  }
  if (options.checkpoint_interval && *options.checkpoint_interval < 1) {
    throw InvalidArgumentError(str("CheckpointManager: checkpoint_interval is ",
                                   *options.checkpoint_interval, "; it must be positive"));
  }
  const std::string& name = options.checkpoint_name;
  if (name.empty() || name.find('/') != name.npos) {
    throw InvalidArgumentError(
        str("CheckpointManager: checkpoint_name is ", quoted(name), "; it must be a file name"));
  }
  return options;
}

}  // namespace

CheckpointManagerImpl::CheckpointManagerImpl(train::Checkpoint checkpoint, std::string directory,
                                             train::CheckpointManagerOptions options,
                                             std::function<double()> clock)
    : checkpoint_(std::move(checkpoint)),
      directory_(std::move(directory)),
      options_(checked(std::move(options))),
      kept_(std::make_shared<KeptCheckpoints>(
          checkpoint_.impl().files(),
          KeptOptions{.directory = directory_,
                      .name = options_.checkpoint_name,
                      .max_to_keep = options_.max_to_keep,
                      .every_n_hours = options_.keep_checkpoint_every_n_hours,
                      .clock = std::move(clock)})) {}

std::optional<int64_t> CheckpointManagerImpl::step() const {
  if (!options_.step_counter) return std::nullopt;
  return (*options_.step_counter)();
}

// Whether the interval has passed, and anything has happened at all since the latest save.
bool CheckpointManagerImpl::is_due(int64_t step, bool check_interval) const {
  const std::optional<int64_t> last = kept_->last_step();
  if (!last) return true;
  return step != *last && !(check_interval && step < *last + *options_.checkpoint_interval);
}

std::optional<std::string> CheckpointManagerImpl::save(const train::ManagerSaveOptions& options) {
  checkpoint_.wait(options.checkpoint.timeout);
  const std::optional<int64_t> now = step();
  if (options_.checkpoint_interval && !is_due(*now, options.check_interval)) return std::nullopt;
  SaveJob job;
  job.counted = true;
  job.begin = [&] {
    kept_->check_state();
    const int64_t counter = checkpoint_.impl().save_counter().next();
    return str(join_path(directory_, options_.checkpoint_name), "-",
               options.checkpoint_number.value_or(counter));
  };
  job.then = [kept = kept_, now](const std::string& path) {
    kept->record(path, now);
    return kept->format_list();
  };
  job.learn = [kept = kept_](const std::string& told) { kept->take_list(told); };
  const std::string path = checkpoint_.impl().write(job, options.checkpoint);
  // The writer from then on may be one that comes.
  group()->admit([&] {
    checkpoint_.wait(options.checkpoint.timeout);
    checkpoint_.impl().leave_directories();
  });
  return path;
}

std::shared_ptr<train::SaveGroup> CheckpointManagerImpl::group() const {
  return SavedObjects(*checkpoint_.impl().root()).save_group();
}

// A program that only reads may restore beside the one that saves; one that saves learns at once
// what its first save would fail of.
void CheckpointManagerImpl::warn_of_another_writer() const {
  const auto who = CheckpointDirectory::other_writer(checkpoint_.impl().files(), directory_);
  if (!who) return;
  log_warning("CheckpointManager: another process writes checkpoints into ", quoted(directory_),
              ": ", quoted(*who), "; as long as it does, every save of this one there will fail");
}

// The writer's list is the one that counts.
std::optional<std::string> CheckpointManagerImpl::agree_on_latest(
    const train::RestoreOptions& options) {
  const GroupTalk talk =
      checkpoint_.impl().talk("restoring the latest checkpoint", options.group_timeout);
  const std::string told = talk.tell("which", [&] {
    try {
      kept_->check_state();
      if (options.fall_back && !kept_->latest()) kept_->recover_by_number();
    } catch (const DataLossError&) {
      if (!options.fall_back) throw;
      kept_->recover_by_number();
    }
    return kept_->format_list();
  });
  if (!talk.is_writer()) kept_->take_list(told);
  return kept_->latest();
}

std::optional<std::string> CheckpointManagerImpl::restore_or_initialize(
    const train::RestoreOptions& options) {
  std::optional<std::string> restored;
  const auto restore = [&] {
    kept_->read_again();
    restored = restore_latest(options);
  };
  if (group()->join(restore)) return restored;
  if (group()->is_writer()) warn_of_another_writer();
  return restore_latest(options);
}

std::optional<std::string> CheckpointManagerImpl::restore_latest(
    const train::RestoreOptions& options) {
  checkpoint_.wait(options.timeout);
  if (const auto path = agree_on_latest(options)) {
    const train::LoadStatus status = checkpoint_.restore(*path, options);
    if (const auto now = step()) kept_->set_last_step(*now);
    return status.path();
  }
  if (options_.init_fn) {
    options_.init_fn();
    log_info("the model was initialized by the manager's init_fn");
  }
  return std::nullopt;
}

}  // namespace cohort::internal

namespace cohort::train {
namespace {

double system_clock() {
  using std::chrono::duration;
  return duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

CheckpointManager::CheckpointManager(Checkpoint checkpoint, std::string directory,
                                     CheckpointManagerOptions options)
    : impl_(std::make_shared<internal::CheckpointManagerImpl>(
          std::move(checkpoint), std::move(directory), std::move(options), system_clock)) {}

std::optional<std::string> CheckpointManager::save(const ManagerSaveOptions& options) const {
  return impl_->save(options);
}

std::optional<std::string> CheckpointManager::restore_or_initialize(
    const RestoreOptions& options) const {
  return impl_->restore_or_initialize(options);
}

const std::string& CheckpointManager::directory() const { return impl_->directory(); }
const Checkpoint& CheckpointManager::checkpoint() const { return impl_->checkpoint(); }
std::optional<int64_t> CheckpointManager::checkpoint_interval() const {
  return impl_->options().checkpoint_interval;
}
std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  impl_->kept().check_state();
  return impl_->kept().latest();
}
std::vector<std::string> CheckpointManager::checkpoints() const { return impl_->kept().paths(); }

}  // namespace cohort::train

namespace cohort::internal {

train::CheckpointManager manager_with_clock(train::Checkpoint checkpoint, std::string directory,
                                            train::CheckpointManagerOptions options,
                                            std::function<double()> clock) {
  return train::CheckpointManager(std::make_shared<CheckpointManagerImpl>(
      std::move(checkpoint), std::move(directory), std::move(options), std::move(clock)));
}

}  // namespace cohort::internal
