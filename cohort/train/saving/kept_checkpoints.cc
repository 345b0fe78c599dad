#include "cohort/train/saving/kept_checkpoints.h"

#include <algorithm>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/train/bundle/bundle_writer.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "cohort/train/saving/checkpoint_numbers.h"

namespace cohort::internal {
namespace {

constexpr double kSecondsPerHour = 3600;

// What the writer tells the group of what it keeps.
struct KeptList {
  std::optional<std::string> latest = std::nullopt;
  std::vector<std::string> paths = {};
  std::optional<int64_t> last_step = std::nullopt;
};
void fields(auto& f, KeptList& list) {
  f(1, list.latest);
  f(2, list.paths);
  f(3, list.last_step);
}

}  // namespace

KeptCheckpoints::KeptCheckpoints(FileSystem& files, KeptOptions options)
    : files_(files), options_(std::move(options)) {
  read_again();
}

void KeptCheckpoints::read_again() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  latest_.reset();
  state_error_ = nullptr;
  last_preserved_ = options_.clock() - 1;
  try {
    recover();
  } catch (const DataLossError&) {
    state_error_ = std::current_exception();
  }
}

void KeptCheckpoints::recover() {
  const auto state = read_checkpoint_state(files_, options_.directory);
  if (!state) return;
  const double now = options_.clock();
  if (!state->model_checkpoint_path.empty()) latest_ = state->model_checkpoint_path;
  last_preserved_ = state->last_preserved_timestamp;
  if (now < last_preserved_) {
    log_warning("the clock is ", last_preserved_ - now, " s behind the latest checkpoint that '",
                options_.directory, "' was to keep for good; was it set back?");
    last_preserved_ = now;
  }
  const auto& paths = state->all_model_checkpoint_paths;
  const auto& times = state->all_model_checkpoint_timestamps;
  for (size_t i = 0; i < paths.size(); ++i) {
    const double saved_at = std::min(i < times.size() ? times[i] : last_preserved_, now);
    // Older ones were kept for every_n_hours, or are not a manager's.
    if (saved_at > last_preserved_) kept_.push_back({paths[i], saved_at});
  }
}

void KeptCheckpoints::check_state() const {
  std::lock_guard lock(mutex_);
  if (state_error_ != nullptr) std::rethrow_exception(state_error_);
}

void KeptCheckpoints::recover_by_number() {
  const std::vector<std::string> found =
      numbered_checkpoints(files_, join_path(options_.directory, options_.name));
  std::lock_guard lock(mutex_);
  const bool nothing_was_saved = found.empty() && state_error_ == nullptr;
  state_error_ = nullptr;
  latest_ = found.empty() ? std::optional<std::string>() : found.front();
  if (nothing_was_saved) return;
  log_warning("the state file of '", options_.directory, "' is missing or damaged, or names a ",
              "checkpoint that is gone; ",
              latest_ ? "the latest checkpoint by its number is '" + *latest_ + "'"
                      : std::string("there is no checkpoint either"));
}

std::optional<std::string> KeptCheckpoints::latest() const {
  std::lock_guard lock(mutex_);
  return latest_;
}

std::vector<std::string> KeptCheckpoints::paths() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const Kept& kept : kept_) paths.push_back(kept.path);
  return paths;
}

std::optional<int64_t> KeptCheckpoints::last_step() const {
  std::lock_guard lock(mutex_);
  return last_step_;
}

void KeptCheckpoints::set_last_step(int64_t step) {
  std::lock_guard lock(mutex_);
  last_step_ = step;
}

std::string KeptCheckpoints::format_list() const {
  std::lock_guard lock(mutex_);
  KeptList list{.latest = latest_, .last_step = last_step_};
  for (const Kept& one : kept_) list.paths.push_back(one.path);
  return encode_fields(list);
}

void KeptCheckpoints::take_list(std::string_view bytes) {
  const auto list = decode_fields<KeptList>(bytes, "the writer's list of checkpoints");
  std::lock_guard lock(mutex_);
  latest_ = list.latest;
  kept_.clear();
  for (const std::string& path : list.paths) kept_.push_back({path});
  last_step_ = list.last_step;
  state_error_ = nullptr;
}

// The state is written before anything is deleted and after: what it names as the latest is there
// at any time, and what it lists is there or about to go.
void KeptCheckpoints::record(const std::string& path, std::optional<int64_t> step) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const Kept& one) { return one.path == path; });
    kept_.push_back({path, options_.clock()});
    latest_ = path;
  }
  write_state();
  delete_surplus();
  // Last: a save that failed is still due, here as at the others of the group, who learn nothing of
  // it.
  if (step) set_last_step(*step);
}

void KeptCheckpoints::delete_surplus() {
  const size_t count = paths().size();
  std::vector<Kept> removed = take_surplus();
  if (paths().size() == count) return;
  std::erase_if(removed, [&](const Kept& one) { return remove(one.path); });
  {
    std::lock_guard lock(mutex_);
    kept_.insert(kept_.begin(), removed.begin(), removed.end());
  }
  write_state();
}

// Takes those beyond max_to_keep off the list, and returns those of them that are to be deleted.
std::vector<KeptCheckpoints::Kept> KeptCheckpoints::take_surplus() {
  std::vector<Kept> removed;
  std::lock_guard lock(mutex_);
  while (options_.max_to_keep && kept_.size() > static_cast<size_t>(*options_.max_to_keep)) {
    const Kept oldest = kept_.front();
    kept_.erase(kept_.begin());
    const double hours = options_.every_n_hours.value_or(0);
    if (hours != 0 && oldest.saved_at - hours * kSecondsPerHour >= last_preserved_) {
      last_preserved_ = oldest.saved_at;
    } else if (oldest.path != latest_) {
      removed.push_back(oldest);
    }
  }
  return removed;
}

void KeptCheckpoints::write_state() const {
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
  write_checkpoint_state(files_, options_.directory, state);
}

// The index first: without it there is no checkpoint, whatever is left.
bool KeptCheckpoints::remove(const std::string& path) const {
  try {
    const std::string index = bundle_index_path(path);
    if (files_.exists(index)) files_.remove(index);
    for (const std::string& name : list_data_files(files_, path)) {
      files_.remove(join_path(parent_directory(path), name));
    }
    return true;
  } catch (const Error& error) {
    log_warning("the old checkpoint '", path, "' could not be deleted: ", error.what(),
                "; the next save tries again");
    return false;
  }
}

}  // namespace cohort::internal
