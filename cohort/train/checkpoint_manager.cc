#include "cohort/train/checkpoint_manager.h"

#include <algorithm>
#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle_writer.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/checkpoint_manager_impl.h"

namespace cohort::internal {
namespace {

constexpr double kSecondsPerHour = 3600;

void check_options(const train::CheckpointManagerOptions& options) {
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
}

}  // namespace

CheckpointManagerImpl::CheckpointManagerImpl(train::Checkpoint checkpoint, std::string directory,
                                             train::CheckpointManagerOptions options,
                                             std::function<double()> clock)
    : checkpoint_(std::move(checkpoint)),
      directory_(std::move(directory)),
      options_(std::move(options)),
      clock_(std::move(clock)) {
  check_options(options_);
  recover();
}

void CheckpointManagerImpl::recover() {
  const double now = clock_();
  last_preserved_ = now - 1;
  const auto state = read_checkpoint_state(checkpoint_.impl().files(), directory_);
  if (!state) return;
  if (!state->model_checkpoint_path.empty()) latest_ = state->model_checkpoint_path;
  last_preserved_ = state->last_preserved_timestamp;
  if (now < last_preserved_) {
    log_warning("the clock is ", last_preserved_ - now, " s behind the latest checkpoint that '",
                directory_, "' was to keep for good; was it set back?");
    last_preserved_ = now;
  }
  const auto& paths = state->all_model_checkpoint_paths;
  const auto& times = state->all_model_checkpoint_timestamps;
  for (size_t i = 0; i < paths.size(); ++i) {
    const double saved_at = std::min(i < times.size() ? times[i] : last_preserved_, now);
    // Older ones were kept for keep_checkpoint_every_n_hours, or are not a manager's.
    if (saved_at > last_preserved_) kept_.push_back({paths[i], saved_at});
  }
}

std::optional<std::string> CheckpointManagerImpl::latest() const {
  std::lock_guard lock(mutex_);
  return latest_;
}

std::vector<std::string> CheckpointManagerImpl::paths() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const Kept& kept : kept_) paths.push_back(kept.path);
  return paths;
}

// With an interval: whether it has passed, and anything has happened at all.
bool CheckpointManagerImpl::due(bool check_interval) {
  if (!options_.checkpoint_interval) return true;
  const int64_t step = (*options_.step_counter)();
  if (last_step_) {
    if (step == *last_step_) return false;
    if (check_interval && step < *last_step_ + *options_.checkpoint_interval) return false;
  }
  last_step_ = step;
  return true;
}

std::optional<std::string> CheckpointManagerImpl::save(
    const train::ManagerSaveOptions& options, const std::shared_ptr<CheckpointManagerImpl>& self) {
  checkpoint_.wait(options.checkpoint.timeout);
  const std::optional<int64_t> step_before = last_step_;
  if (!due(options.check_interval)) return std::nullopt;
  const int64_t counter = checkpoint_.impl().save_counter().next();
  const std::string path =
      str(join_path(directory_, options_.checkpoint_name), "-",
          options.checkpoint_number.value_or(counter));
  try {
    checkpoint_.impl().write(path, options.checkpoint, [self, path] { self->record(path); });
  } catch (...) {
    last_step_ = step_before;  // it is still due
    throw;
  }
  return path;
}

// The state is written before anything is deleted and after: what it names as the latest is there
// at any time, and what it lists is there or about to go.
void CheckpointManagerImpl::record(const std::string& path) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const Kept& one) { return one.path == path; });
    kept_.push_back({path, clock_()});
    latest_ = path;
  }
  write_state();
  const size_t count = paths().size();
  const std::vector<std::string> removed = take_surplus();
  if (paths().size() == count) return;
  for (const std::string& old : removed) remove(old);
  write_state();
}

// Takes those beyond max_to_keep off the list, and returns those of them that are to be deleted.
std::vector<std::string> CheckpointManagerImpl::take_surplus() {
  std::vector<std::string> removed;
  std::lock_guard lock(mutex_);
  while (options_.max_to_keep && kept_.size() > static_cast<size_t>(*options_.max_to_keep)) {
    const Kept oldest = kept_.front();
    kept_.erase(kept_.begin());
    const auto hours = options_.keep_checkpoint_every_n_hours;
    if (hours && oldest.saved_at - *hours * kSecondsPerHour >= last_preserved_) {
      last_preserved_ = oldest.saved_at;
    } else {
      removed.push_back(oldest.path);
    }
  }
  return removed;
}

void CheckpointManagerImpl::write_state() const {
  CheckpointState state;
  {
    std::lock_guard lock(mutex_);
    state.model_checkpoint_path = *latest_;
    state.last_preserved_timestamp = last_preserved_;
    for (const Kept& one : kept_) {
      state.all_model_checkpoint_paths.push_back(one.path);
      state.all_model_checkpoint_timestamps.push_back(one.saved_at);
    }
  }
  write_checkpoint_state(checkpoint_.impl().files(), directory_, state);
}

// The index first: without it there is no checkpoint, whatever is left.
void CheckpointManagerImpl::remove(const std::string& path) const {
  FileSystem& files = checkpoint_.impl().files();
  const std::string index = bundle_index_path(path);
  if (files.exists(index)) files.remove(index);
  for (const std::string& name : list_data_files(files, path)) {
    files.remove(join_path(parent_directory(path), name));
  }
}

std::optional<std::string> CheckpointManagerImpl::restore_or_initialize(
    const train::RestoreOptions& options) {
  checkpoint_.wait();
  if (const auto path = latest()) {
    const train::LoadStatus status = checkpoint_.restore(*path, options);
    if (options_.step_counter) last_step_ = (*options_.step_counter)();
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
  return impl_->save(options, impl_);
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
std::optional<std::string> CheckpointManager::latest_checkpoint() const { return impl_->latest(); }
std::vector<std::string> CheckpointManager::checkpoints() const { return impl_->paths(); }

}  // namespace cohort::train
