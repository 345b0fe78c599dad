#include "cohort/parameter_server/variables/kept_parts.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/store/kept_message.h"
#include "cohort/train/bundle/bundle_data_file.h"

namespace cohort::internal {
namespace {

using Requests = std::vector<std::pair<int, rpc::Message>>;
using std::chrono::milliseconds;

// The parts of one ps task, as numbers among all; in the order in which it keeps them.
struct OfPs {
  int ps = 0;
  std::vector<ShardKey> keys = {};
  std::vector<size_t> parts = {};
};

using WeakHost = std::weak_ptr<VariableHost>;

std::shared_ptr<VariableHost> live(const WeakHost& weak) {
  if (auto host = weak.lock()) return host;
  throw FailedPreconditionError("the strategy whose variables are saved or restored has ended");
}

void warn(std::atomic<bool>& has_warned, int ps, const std::string& path) {
  if (has_warned.exchange(true)) return;
  log_warning(
      "ps task ", ps, " does not see ", quoted(path),
      ": the coordinator writes and reads checkpoints alone. Put them where all tasks can, and "
      "ps tasks do so with their parts at the same time");
}

class KeptParts final : public train::RemoteValues {
 public:
  KeptParts(WeakHost host, uint64_t id, std::vector<OfPs> of_ps, milliseconds timeout,
            std::atomic<bool>& has_warned)
      : host_(std::move(host)),
        id_(id),
        of_ps_(std::move(of_ps)),
        timeout_(timeout),
        has_warned_(has_warned) {}

  // Nobody waits for the end, which a ps task that is lost does not bring.
  ~KeptParts() override {
    try {
      const auto host = host_.lock();
      if (host == nullptr) return;
      host->store().tell("store/drop_kept",
                         to_each([&](const OfPs&) { return encode(KeptRequest{.id = id_}); }));
    } catch (
        const std::exception&) {  // of a coordinator that leads no more: the next one clears all
    }
  }

  void keep() {
    ask("store/keep",
        to_each([&](const OfPs& one) { return encode(KeepRequest{.id = id_, .keys = one.keys}); }));
  }

  std::optional<std::vector<File>> write(const Target& target) override {
    const auto name = [&](const OfPs& one) { return str(target.file_prefix, one.ps); };
    const auto discard = [&] {
      for (const OfPs& one : of_ps_) {
        discard_file(posix_file_system(), join_path(target.directory, name(one)));
      }
    };
    try {
      const auto replies = ask("store/write_kept", to_each([&](const OfPs& one) {
                                 return encode(WriteKeptRequest{.id = id_,
                                                                .directory = target.directory,
                                                                .probe = target.probe,
                                                                .file = name(one)});
                               }));
      std::vector<File> files;
      for (size_t i = 0; i < of_ps_.size(); ++i) {
        const WriteKeptReply reply = decode_write_kept_reply(replies[i]);
        if (!reply.sees_directory) {
          discard();
          warn(has_warned_, of_ps_[i].ps, target.directory);
          return std::nullopt;
        }
        files.push_back(file_of(of_ps_[i], name(of_ps_[i]), reply));
      }
      return files;
    } catch (...) {
      discard();
      throw;
    }
  }

  Tensor fetch(size_t part) override {
    for (const OfPs& one : of_ps_) {
      for (size_t i = 0; i < one.parts.size(); ++i) {
        if (one.parts[i] != part) continue;
        Requests request;
        request.emplace_back(one.ps, encode(KeptRequest{.id = id_, .index = i}));
        const auto replies = ask("store/read_kept", std::move(request));
        const ReadReply reply = decode_read_reply(replies.at(0));
        if (reply.values.size() == 1 && reply.values[0].tensor.defined()) {
          return reply.values[0].tensor;
        }
        throw DataLossError(str("ps task ", one.ps, " answered with other values"));
      }
    }
    throw InternalError(str("no ps task has part ", part));
  }

 private:
  std::vector<rpc::Message> ask(const char* method, Requests requests) const {
    return live(host_)->store().ask(method, std::move(requests), timeout_);
  }
  template <class Make>
  Requests to_each(const Make& make) const {
    Requests requests;
    for (const OfPs& one : of_ps_) requests.emplace_back(one.ps, make(one));
    return requests;
  }
  static File file_of(const OfPs& one, std::string name, const WriteKeptReply& reply) {
    if (reply.places.size() != one.parts.size()) {
      throw DataLossError(str("ps task ", one.ps, " wrote ", reply.places.size(),
                              " values instead of ", one.parts.size()));
    }
    File file{.name = std::move(name), .parts = {}};
    for (size_t i = 0; i < one.parts.size(); ++i) {
      const WriteKeptReply::Place& place = reply.places[i];
      file.parts.push_back({one.parts[i], place.offset, place.size, place.crc});
    }
    return file;
  }
  const WeakHost host_;
  const uint64_t id_;
  const std::vector<OfPs> of_ps_;
  const milliseconds timeout_;
  std::atomic<bool>& has_warned_;
};

// A ps task that reads is watched (ps_watch.h); only a disk can take so long.
constexpr std::chrono::minutes kReadTimeout{60};

// What ps tasks have read, or got, and not adopted yet.
class ReadParts final : public train::RemoteReads {
 public:
  ReadParts(WeakHost host, uint64_t id) : host_(std::move(host)), id_(id) {}

  ~ReadParts() override {
    try {
      const auto host = host_.lock();
      if (host && !tasks_.empty()) host->store().tell("store/drop_parts", to_each());
    } catch (const std::exception&) {  // as of kept parts
    }
  }

  // Whether every ps task found the checkpoint.
  bool read(const std::map<int, ReadPartsRequest>& of_ps, const std::string& prefix,
            std::atomic<bool>& has_warned) {
    Requests requests;
    for (const auto& [ps, request] : of_ps) {
      requests.emplace_back(ps, encode(request));
      tasks_.push_back(ps);
    }
    const auto replies =
        live(host_)->store().ask("store/read_parts", std::move(requests), kReadTimeout);
    for (size_t i = 0; i < replies.size(); ++i) {
      if (decode_read_parts_reply(replies[i]).found) continue;
      warn(has_warned, tasks_[i], prefix);
      return false;
    }
    return true;
  }

  void send(int ps, VariableStore::NewValue part) {
    if (std::find(tasks_.begin(), tasks_.end(), ps) == tasks_.end()) tasks_.push_back(ps);
    Requests request;
    request.emplace_back(ps, encode(SendPartRequest{.id = id_, .part = std::move(part)}));
    live(host_)->store().ask("store/send_part", std::move(request), kReadTimeout);
  }

  void commit() override {
    const auto host = live(host_);
    host->step().forget_pull();
    host->store().ask("store/adopt_parts", to_each(), kReadTimeout);
    tasks_.clear();
  }

 private:
  Requests to_each() const {
    Requests requests;
    for (const int ps : tasks_) requests.emplace_back(ps, encode(KeptRequest{.id = id_}));
    return requests;
  }

  const WeakHost host_;
  const uint64_t id_;
  std::vector<int> tasks_;  // that have parts
};

// In a task that leaves changes to the coordinator.
class NoReads final : public train::RemoteReads {
 public:
  void commit() override {}
};

class PartKeeper final : public train::RemoteKeeper {
 public:
  explicit PartKeeper(WeakHost host) : host_(std::move(host)) {}

  std::unique_ptr<train::RemoteValues> keep(
      const std::vector<std::shared_ptr<const train::RemotePart>>& parts,
      milliseconds timeout) override {
    std::map<int, OfPs> by_ps;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& part = static_cast<const ServedPart&>(*parts[i]);
      OfPs& of_ps = by_ps[part.place().ps];
      of_ps.ps = part.place().ps;
      of_ps.keys.push_back(part.place().key);
      of_ps.parts.push_back(i);
    }
    std::vector<OfPs> of_ps;
    for (auto& [ps, one] : by_ps) of_ps.push_back(std::move(one));
    auto kept =
        std::make_unique<KeptParts>(host_, ++last_id_, std::move(of_ps), timeout, has_warned_);
    kept->keep();
    return kept;
  }

  std::unique_ptr<train::RemoteReads> read(const std::string& prefix, uint32_t index_crc,
                                           const std::vector<train::RemoteRead>& wanted) override {
    if (!live(host_)->cluster().writes_outside_steps()) return std::make_unique<NoReads>();
    if (Task::current().job() == kWorker)
      return nullptr;  // ps tasks read for the coordinator alone
    const uint64_t id = ++last_id_;
    std::map<int, ReadPartsRequest> of_ps;
    for (const train::RemoteRead& one : wanted) {
      const auto& part = static_cast<const ServedPart&>(*one.part);
      ReadPartsRequest& request = of_ps[part.place().ps];
      request.id = id;
      request.prefix = prefix;
      request.index_crc = index_crc;
      request.parts.push_back({part.place().key, one.key, one.slice, part.new_name()});
    }
    auto reads = std::make_unique<ReadParts>(host_, id);
    if (!reads->read(of_ps, prefix, has_warned_)) return nullptr;
    return reads;
  }

  std::unique_ptr<train::RemoteReads> send(
      const std::vector<train::RemoteRead>& wanted,
      FunctionRef<Tensor(const train::RemoteRead&)> value_of) override {
    if (Task::current().job() == kWorker) return nullptr;
    auto sent = std::make_unique<ReadParts>(host_, ++last_id_);
    for (const train::RemoteRead& one : wanted) {
      const auto& part = static_cast<const ServedPart&>(*one.part);
      sent->send(part.place().ps, {part.place().key, value_of(one), part.new_name()});
    }
    return sent;
  }

 private:
  const WeakHost host_;
  std::atomic<uint64_t> last_id_{0};
  std::atomic<bool> has_warned_{false};
};

}  // namespace

std::shared_ptr<train::RemoteKeeper> make_part_keeper(const WeakHost& host) {
  return std::make_shared<PartKeeper>(host);
}

}  // namespace cohort::internal
