#include "cohort/train/checkpoint.h"

#include "cohort/core/error.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort {
namespace internal {
namespace {

// The state file of the directory names this checkpoint, and no other.
std::function<std::string(const std::string& path)> becoming_the_latest(FileSystem& files) {
  return [&files](const std::string& path) {
    CheckpointState state;
    state.model_checkpoint_path = path;
    state.all_model_checkpoint_paths = {path};
    write_checkpoint_state(files, parent_directory(path), state);
    return std::string();
  };
}

}  // namespace

std::string write_as_latest(const train::Checkpoint& checkpoint, const std::string& path,
                            const train::CheckpointOptions& options) {
  CheckpointImpl& impl = checkpoint.impl();
  SaveJob job;
  job.begin = [&path] { return path; };
  job.then = becoming_the_latest(impl.files());
  return impl.write(job, options);
}

}  // namespace internal

namespace train {

Checkpoint::Checkpoint(std::vector<NamedObject> objects)
    : impl_(std::make_shared<internal::CheckpointImpl>(nullptr, std::move(objects))) {}

Checkpoint::Checkpoint(TrackableHandle root, std::vector<NamedObject> objects)
    : impl_(std::make_shared<internal::CheckpointImpl>(root.get(), std::move(objects))) {}

std::string Checkpoint::save(const std::string& file_prefix,
                             const CheckpointOptions& options) const {
  internal::SaveJob job;
  job.counted = true;
  job.begin = [this, &file_prefix] {
    return internal::str(file_prefix, "-", impl_->save_counter().next());
  };
  job.then = internal::becoming_the_latest(impl_->files());
  return impl_->write(job, options);
}

std::string Checkpoint::write(const std::string& path, const CheckpointOptions& options) const {
  internal::SaveJob job;
  job.begin = [&path] { return path; };
  return impl_->write(job, options);
}

LoadStatus Checkpoint::restore(const std::optional<std::string>& path,
                               const RestoreOptions& options) const {
  return impl_->restore(path, options);
}

LoadStatus Checkpoint::read(const std::string& path, const RestoreOptions& options) const {
  return impl_->read(path, options);
}

int64_t Checkpoint::save_counter() const { return impl_->save_counter().value(); }

void Checkpoint::wait(std::chrono::milliseconds timeout) const { impl_->wait(timeout); }

std::optional<std::string> latest_checkpoint(const std::string& directory,
                                             const LatestOptions& options) {
  return internal::find_latest(internal::posix_file_system(), directory, options);
}

}  // namespace train

namespace internal {

void use_file_system(const train::Checkpoint& checkpoint, FileSystem& files) {
  checkpoint.impl().use(files);
}

}  // namespace internal
}  // namespace cohort
