#include "cohort/core/files/simulated_file_system.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

using NodePtr = std::shared_ptr<SimulatedNode>;

struct SimulatedFileSystem::State {
  mutable std::mutex mutex;
  // All guarded by mutex.
  SimulatedDisk disk;
  uint64_t capacity_bytes = 0;
  bool remote = false;
  FaultPlan plan;
  std::function<void(const std::string&)> hook;
  std::vector<std::string> log;
  bool killed = false;

  // One call, made with the lock held: its kind, and whether it is to fail.
  class Call {
   public:
    Call(State& state, std::string text);
    bool goes_wrong() const { return killed_ || error_number_ != 0; }
    void go_wrong_if_told() const;
    [[noreturn]] void fail(int error_number) const { throw_errno(error_number, text_); }

   private:
    const std::string text_;
    std::unique_lock<std::mutex> lock_;
    bool killed_ = false;
    int error_number_ = 0;
  };

  uint64_t free_bytes() const;
};

using State = SimulatedFileSystem::State;

State::Call::Call(State& state, std::string text) : text_(std::move(text)), lock_(state.mutex) {
  if (const auto hook = state.hook) {
    lock_.unlock();
    hook(text_);
    lock_.lock();
  }
  if (state.killed) throw SimulatedKill();
  state.log.push_back(text_);
  const auto number = static_cast<int64_t>(state.log.size());
  const FaultPlan& plan = state.plan;
  killed_ = state.killed = number == plan.kill_at;
  const bool fails =
      number == plan.fail_at || (plan.stays_broken && plan.fail_at != 0 && number > plan.fail_at);
  if (fails) error_number_ = plan.error_number;
}

void State::Call::go_wrong_if_told() const {
  if (killed_) throw SimulatedKill();
  if (error_number_ != 0) fail(error_number_);
}

uint64_t State::free_bytes() const {
  return capacity_bytes - std::min(capacity_bytes, disk.used_bytes());
}

namespace {

class SimulatedWritableFile final : public WritableFile {
 public:
  SimulatedWritableFile(std::shared_ptr<State> state, NodePtr node, std::string path)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)) {}

  void append(std::string_view bytes) override {
    const State::Call call(*state_, str("writing ", bytes.size(), " bytes to ", quoted(path_)));
    std::string& stored = node_->bytes;
    if (call.goes_wrong()) stored += bytes.substr(0, bytes.size() / 2);
    call.go_wrong_if_told();
    const uint64_t reserved = node_->reserved_bytes;
    const uint64_t own = reserved - std::min<uint64_t>(reserved, stored.size());
    const uint64_t others = state_->free_bytes();
    if (bytes.size() > own && bytes.size() - own > others) {
      stored += bytes.substr(0, own + others);
      call.fail(ENOSPC);
    }
    stored += bytes;
  }

  void sync() override {
    const State::Call call(*state_, "syncing " + quoted(path_));
    if (call.goes_wrong()) node_->pages_dropped = true;
    call.go_wrong_if_told();
    node_->reserved_bytes = 0;
    if (!node_->pages_dropped) node_->synced_bytes = node_->bytes;
  }

  void close() override {
    const State::Call call(*state_, "closing " + quoted(path_));
    call.go_wrong_if_told();
    node_->reserved_bytes = 0;
  }

 private:
  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const std::string path_;
};

class SimulatedReadableFile final : public ReadableFile {
 public:
  SimulatedReadableFile(std::shared_ptr<State> state, NodePtr node, std::string path)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        size_(node_->bytes.size()) {}

  uint64_t size() const override { return size_; }
  bool is_remote() const override { return state_->remote; }

  void read(uint64_t offset, void* out, size_t length) const override {
    const State::Call call(*state_, str("reading ", length, " bytes of ", quoted(path_)));
    call.go_wrong_if_told();
    const uint64_t size = node_->bytes.size();
    if (offset > size || length > size - offset) {
      throw DataLossError(str(quoted(path_), " ends after ", size, " bytes: ", length,
                              " bytes at offset ", offset, " are missing"));
    }
    if (length > 0) std::memcpy(out, node_->bytes.data() + offset, length);
  }

 private:
  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const std::string path_;
  const uint64_t size_;
};

void forget(const SimulatedPlace& place) { place.directory->entries.erase(place.name); }

class SimulatedLock final : public FileLock {
 public:
  SimulatedLock(std::shared_ptr<State> state, NodePtr node, std::string path)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)) {}
  ~SimulatedLock() override {
    const std::lock_guard lock(state_->mutex);
    node_->locked = false;
    if (state_->disk.find(path_) == node_) forget(state_->disk.place(path_));
  }

  bool still_valid() const override {
    const std::lock_guard lock(state_->mutex);
    return state_->disk.find(path_) == node_;
  }

 private:
  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const std::string path_;
};

NodePtr require_node(const State& state, const State::Call& call, const std::string& path) {
  NodePtr node = state.disk.find(path);
  if (!node) call.fail(ENOENT);
  return node;
}

NodePtr require_directory(const State::Call& call, NodePtr node) {
  if (!node) call.fail(ENOENT);
  if (!node->directory) call.fail(ENOTDIR);
  return node;
}

NodePtr add_file(const State& state, const State::Call& call, const std::string& path) {
  const SimulatedPlace place = state.disk.place(path);
  const NodePtr there = state.disk.find(path);
  if (there && there->directory) call.fail(EISDIR);
  return require_directory(call, place.directory)->entries[place.name] =
             std::make_shared<SimulatedNode>();
}

void make_path(const State& state, const State::Call& call, const std::string& path) {
  const NodePtr there = state.disk.find(path);
  if (there && there->directory) return;
  if (there) call.fail(EEXIST);
  make_path(state, call, parent_directory(path));
  const SimulatedPlace place = state.disk.place(path);
  if (place.directory->entries.contains(place.name)) return;  // "made/."
  const auto node = std::make_shared<SimulatedNode>();
  node->directory = true;
  place.directory->entries[place.name] = place.directory->synced_entries[place.name] = node;
}

std::shared_ptr<State> new_state(SimulatedDisk disk, uint64_t capacity_bytes) {
  auto state = std::make_shared<State>();
  state->disk = std::move(disk);
  state->capacity_bytes = capacity_bytes;
  return state;
}

}  // namespace

SimulatedFileSystem::SimulatedFileSystem(const SimulatedFileSystemOptions& options)
    : state_(new_state({}, options.capacity_bytes)) {
  state_->remote = options.remote;
}

std::unique_ptr<WritableFile> SimulatedFileSystem::create(const std::string& path,
                                                          const CreateOptions& options) {
  const State::Call call(*state_, "creating " + quoted(path));
  call.go_wrong_if_told();
  const NodePtr node = add_file(*state_, call, path);
  if (options.expected_bytes > state_->free_bytes()) {
    forget(state_->disk.place(path));
    call.fail(ENOSPC);
  }
  node->reserved_bytes = options.expected_bytes;
  return std::make_unique<SimulatedWritableFile>(state_, node, path);
}

std::unique_ptr<ReadableFile> SimulatedFileSystem::open(const std::string& path) {
  const State::Call call(*state_, "opening " + quoted(path));
  call.go_wrong_if_told();
  const NodePtr node = require_node(*state_, call, path);
  if (node->directory) call.fail(EISDIR);
  return std::make_unique<SimulatedReadableFile>(state_, node, path);
}

bool SimulatedFileSystem::exists(const std::string& path) {
  const State::Call call(*state_, "looking for " + quoted(path));
  call.go_wrong_if_told();
  return state_->disk.find(path) != nullptr;
}

void SimulatedFileSystem::rename(const std::string& from, const std::string& to) {
  const State::Call call(*state_, str("renaming ", quoted(from), " to ", quoted(to)));
  call.go_wrong_if_told();
  const NodePtr node = require_node(*state_, call, from);
  const NodePtr target = state_->disk.find(to);
  if (node->directory || (target && target->directory)) call.fail(EISDIR);
  const SimulatedPlace place = state_->disk.place(to);
  require_directory(call, place.directory);
  forget(state_->disk.place(from));
  place.directory->entries[place.name] = node;
}

void SimulatedFileSystem::remove(const std::string& path) {
  const State::Call call(*state_, "removing " + quoted(path));
  call.go_wrong_if_told();
  if (require_node(*state_, call, path)->directory) call.fail(EISDIR);
  forget(state_->disk.place(path));
}

void SimulatedFileSystem::remove_directory(const std::string& path) {
  const State::Call call(*state_, "removing directory " + quoted(path));
  call.go_wrong_if_told();
  if (!require_directory(call, state_->disk.find(path))->entries.empty()) call.fail(ENOTEMPTY);
  forget(state_->disk.place(path));
}

std::vector<std::string> SimulatedFileSystem::list(const std::string& directory) {
  const State::Call call(*state_, "listing " + quoted(directory));
  call.go_wrong_if_told();
  const NodePtr node = require_directory(call, state_->disk.find(directory));
  std::vector<std::string> names;
  for (const auto& [name, child] : node->entries) names.push_back(name);
  return names;
}

void SimulatedFileSystem::make_directories(const std::string& path) {
  const State::Call call(*state_, "making directory " + quoted(path));
  call.go_wrong_if_told();
  make_path(*state_, call, path);
}

void SimulatedFileSystem::sync_directory(const std::string& path) {
  const State::Call call(*state_, "syncing directory " + quoted(path));
  call.go_wrong_if_told();
  const NodePtr node = require_directory(call, state_->disk.find(path));
  node->synced_entries = node->entries;
}

std::unique_ptr<FileLock> SimulatedFileSystem::lock(const std::string& path,
                                                    std::string_view owner) {
  const State::Call call(*state_, "locking " + quoted(path));
  call.go_wrong_if_told();
  NodePtr node = state_->disk.find(path);
  if (!node) node = add_file(*state_, call, path);
  if (node->locked) {
    throw FailedPreconditionError(str(quoted(path), " is locked by ", quoted(node->bytes),
                                      "; only one may write there at a time"));
  }
  node->locked = true;
  node->bytes = owner;
  return std::make_unique<SimulatedLock>(state_, node, path);
}

std::optional<std::string> SimulatedFileSystem::lock_holder(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->disk.find(path);
  if (!node || !node->locked) return std::nullopt;
  return node->bytes;
}

void SimulatedFileSystem::set_faults(const FaultPlan& plan) {
  const std::lock_guard lock(state_->mutex);
  state_->plan = plan;
}

void SimulatedFileSystem::set_hook(std::function<void(const std::string&)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

void SimulatedFileSystem::set_capacity(uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->capacity_bytes = bytes;
}

std::vector<std::string> SimulatedFileSystem::log() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log;
}

int64_t SimulatedFileSystem::calls() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int64_t>(state_->log.size());
}

std::unique_ptr<SimulatedFileSystem> SimulatedFileSystem::after_kill() const {
  auto result = std::make_unique<SimulatedFileSystem>();
  const std::lock_guard lock(state_->mutex);
  result->state_ = new_state(state_->disk.copy(), state_->capacity_bytes);
  return result;
}

std::unique_ptr<SimulatedFileSystem> SimulatedFileSystem::after_power_cut(
    const PowerCut& cut) const {
  auto result = std::make_unique<SimulatedFileSystem>();
  const std::lock_guard lock(state_->mutex);
  result->state_ = new_state(state_->disk.after(cut), state_->capacity_bytes);
  return result;
}

std::vector<std::string> SimulatedFileSystem::file_paths() const {
  const std::lock_guard lock(state_->mutex);
  return state_->disk.file_paths();
}

std::string SimulatedFileSystem::content(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->disk.find(path);
  if (!node || node->directory) throw NotFoundError("there is no file " + quoted(path));
  return node->bytes;
}

void SimulatedFileSystem::set_content(const std::string& path, std::string_view bytes) {
  const std::lock_guard lock(state_->mutex);
  const SimulatedPlace place = state_->disk.place(path);
  if (!place.directory) throw NotFoundError("there is no directory for " + quoted(path));
  NodePtr node = state_->disk.find(path);
  if (!node) node = std::make_shared<SimulatedNode>();
  node->bytes = node->synced_bytes = bytes;
  place.directory->entries[place.name] = place.directory->synced_entries[place.name] = node;
}

}  // namespace cohort::internal
