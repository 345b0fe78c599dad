#include "cohort/distribute/strategies/task_save_group.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {
namespace {

using collective::Buffer;
using collective::CallOptions;
using collective::Communicator;

class TaskSaveGroup final : public train::SaveGroup {
 public:
  explicit TaskSaveGroup(StrategyCore& core) : core_(core) {}

  bool is_writer() const override { return group().view()->task == 0; }
  std::string name() const override { return group().between().task_name(group().view()->task); }

  std::vector<std::string> gather(std::string brought, const train::SaveGroupCall& call) override {
    const std::vector<int64_t> sizes = all_sizes(static_cast<int64_t>(brought.size()), call);
    std::string all(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})),
                    '\0');
    const auto own = static_cast<size_t>(group().view()->task);
    const int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + own, int64_t{0});
    std::memcpy(all.data() + begin, brought.data(), brought.size());
    collective::all_gather(group().between(), bytes_of(all), sizes, options_of(call));
    if (!is_writer()) return {};
    std::vector<std::string> parts;
    size_t position = 0;
    for (const int64_t size : sizes) {
      parts.push_back(all.substr(position, static_cast<size_t>(size)));
      position += static_cast<size_t>(size);
    }
    return parts;
  }

  std::string barrier(std::string words, const train::SaveGroupCall& call) override {
    if (!is_writer()) words.clear();
    words.resize(static_cast<size_t>(all_sizes(static_cast<int64_t>(words.size()), call)[0]));
    collective::broadcast(group().between(), bytes_of(words), 0, options_of(call));
    return words;
  }

  std::string repeatable(FunctionRef<std::string()> call) override {
    return core_.repeatable(call);
  }
  void admit(FunctionRef<void()> before) override { core_.admit(before); }
  bool join(FunctionRef<void()> restore) override { return core_.join(restore); }

 private:
  static Buffer bytes_of(std::string& text) {
    return {text.data(), static_cast<int64_t>(text.size()), uint8};
  }
  static CallOptions options_of(const train::SaveGroupCall& call) {
    return {.name = call.name, .timeout = call.timeout};
  }

  std::vector<int64_t> all_sizes(int64_t mine, const train::SaveGroupCall& call) {
    std::vector<int64_t> sizes(group().view()->replicas_of.size(), 0);
    sizes[static_cast<size_t>(group().view()->task)] = mine;
    const std::vector<int64_t> one_each(sizes.size(), 1);
    collective::all_gather(group().between(),
                           {sizes.data(), static_cast<int64_t>(sizes.size()), int64}, one_each,
                           options_of(call));
    return sizes;
  }

  collective::SyncGroup& group() const { return core_.group(); }

  StrategyCore& core_;
};

}  // namespace

std::shared_ptr<train::SaveGroup> make_task_save_group(StrategyCore& core) {
  return std::make_shared<TaskSaveGroup>(core);
}

}  // namespace cohort::internal
