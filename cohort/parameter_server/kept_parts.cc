#include "cohort/parameter_server/kept_parts.h"

#include <atomic>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/store/kept_message.h"
#include "cohort/train/bundle_data_file.h"

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

class KeptParts final : public train::RemoteValues {
 public:
  KeptParts(std::weak_ptr<ParameterServerCore> core, uint64_t id, std::vector<OfPs> of_ps,
            milliseconds timeout, std::atomic<bool>& has_warned)
      : core_(std::move(core)),
        id_(id),
        of_ps_(std::move(of_ps)),
        timeout_(timeout),
        has_warned_(has_warned) {}

  // Nobody waits for the end, which a ps task that is lost does not bring.
  ~KeptParts() override {
    try {
      const auto core = core_.lock();
      if (core == nullptr) return;
      core->store().tell("store/drop_kept",
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
          warn(of_ps_[i], target.directory);
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
  std::shared_ptr<ParameterServerCore> core() const {
    if (auto core = core_.lock()) return core;
    throw FailedPreconditionError("the strategy whose variables are saved has ended");
  }
  std::vector<rpc::Message> ask(const char* method, Requests requests) const {
    return core()->store().ask(method, std::move(requests), timeout_);
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
  void warn(const OfPs& one, const std::string& directory) const {
    if (has_warned_.exchange(true)) return;
    log_warning(
        "ps task ", one.ps, " does not see ", quoted(directory),
        ": the coordinator writes checkpoints alone. Put them where all tasks can write, and "
        "ps tasks write their parts at the same time");
  }

  const std::weak_ptr<ParameterServerCore> core_;
  const uint64_t id_;
  const std::vector<OfPs> of_ps_;
  const milliseconds timeout_;
  std::atomic<bool>& has_warned_;
};

class PartKeeper final : public train::RemoteKeeper {
 public:
  explicit PartKeeper(std::weak_ptr<ParameterServerCore> core) : core_(std::move(core)) {}

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
        std::make_unique<KeptParts>(core_, ++last_id_, std::move(of_ps), timeout, has_warned_);
    kept->keep();
    return kept;
  }

 private:
  const std::weak_ptr<ParameterServerCore> core_;
  std::atomic<uint64_t> last_id_{0};
  std::atomic<bool> has_warned_{false};
};

}  // namespace

std::shared_ptr<train::RemoteKeeper> make_part_keeper(
    const std::weak_ptr<ParameterServerCore>& core) {
  return std::make_shared<PartKeeper>(core);
}

}  // namespace cohort::internal
