// Several processes that save and restore as one. Here they are threads, each with objects and a
// checkpoint of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/ops/random.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/saving/group_contribution.h"
#include "cohort/train/saving/latest_checkpoint.h"
#include "cohort/train/saving/testing_save_group.h"

namespace cohort::train {
namespace {

using internal::SimulatedFileSystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kWeights = 1000;

// What a strategy is to a checkpoint: names the group, and has what only this process has.
class GroupObject final : public Trackable {
 public:
  explicit GroupObject(std::shared_ptr<SaveGroup> group) : group_(std::move(group)) {}
  void add(const std::string& name, const TrackableHandle& child) {
    children_.emplace_back(name, child);
  }
  std::vector<TrackableChild> checkpoint_children() override {
    std::vector<TrackableChild> result;
    for (const auto& [name, child] : children_) result.push_back({name, child.get().get()});
    return result;
  }
  std::shared_ptr<SaveGroup> save_group() const override { return group_; }

 private:
  std::shared_ptr<SaveGroup> group_;
  std::vector<NamedObject> children_;
};

// Two rows of a value of six that three processes could hold.
class Rows final : public Trackable {
 public:
  Rows(int64_t first, float value) : first_(first), values{value, value + 1} {}
  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    if (broken) throw UnimplementedError("rows of this kind cannot be saved");
    return {{.attribute = kVariableValue,
             .full_shape = {4},
             .parts = {{Leaf(at::tensor(values)), TensorSlice{{first_}, {2}}}}}};
  }
  void prepare_restore(RestoreSource& source) override {
    source.read_slice(kVariableValue, {4}, {{first_}, {2}}, float32, [this](const Tensor& read) {
      const auto* data = read.data_ptr<float>();
      values.assign(data, data + 2);
    });
  }

  const int64_t first_;
  std::vector<float> values;
  bool broken = false;
};

struct Process {
  Process(SimulatedFileSystem& files, const std::shared_ptr<MemberBarrier>& place, int rank)
      : group(std::make_shared<ThreadSaveGroup>(place, rank)),
        strategy(std::make_shared<GroupObject>(group)),
        generator(random::Generator::from_seed(static_cast<uint64_t>(rank))),
        rows(std::make_shared<Rows>(2 * rank, 10 * static_cast<float>(rank))),
        checkpoint({{"strategy", strategy}, {"weights", weights}, {"rows", rows}}) {
    strategy->add("replica_" + std::to_string(rank), generator);
    use_file_system(checkpoint, files);
  }

  std::shared_ptr<SaveGroup> group;
  std::shared_ptr<GroupObject> strategy;
  random::Generator generator;
  std::shared_ptr<Numbers> weights = numbers(std::vector<float>(kWeights, 1));
  std::shared_ptr<Rows> rows;
  Checkpoint checkpoint;
};

struct CheckpointGroupTest : testing::Test {
  CheckpointGroupTest() : processes(start(files)) {}

  static std::vector<std::unique_ptr<Process>> start(
      SimulatedFileSystem& files, std::shared_ptr<MemberBarrier> place = nullptr) {
    if (place == nullptr) place = std::make_shared<MemberBarrier>(2);
    std::vector<std::unique_ptr<Process>> processes;
    for (int i = 0; i < 2; ++i) processes.push_back(std::make_unique<Process>(files, place, i));
    return processes;
  }

  using Action = std::function<std::string(Process&)>;
  // What `action` returns in each process; of an error its class, task and text.
  static std::vector<std::string> all(const std::vector<std::unique_ptr<Process>>& processes,
                                      const Action& action) {
    std::vector<std::string> results(processes.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < processes.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          results[i] = action(*processes[i]);
        } catch (const Error& error) {
          results[i] = internal::str(code_name(error.code()), ": ", error.what());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
  std::vector<std::string> all(const Action& action) { return all(processes, action); }

  std::vector<std::string> save(const CheckpointOptions& options = {}) {
    return all([&](Process& process) { return process.checkpoint.save("dir/ckpt", options); });
  }
  static std::string restored(Process& process, const std::optional<std::string>& path,
                              const RestoreOptions& options = {}) {
    const LoadStatus status = process.checkpoint.restore(path, options);
    if (!status.path().empty()) status.assert_consumed();
    return status.path();
  }
  std::optional<std::string> latest() { return internal::find_latest(files, "dir"); }
  static std::vector<std::string> on_both(const std::string& text) { return {text, text}; }

  SimulatedFileSystem files;
  std::vector<std::unique_ptr<Process>> processes;
};

TEST_F(CheckpointGroupTest, OneSetOfFilesHoldsWhatAllHave) {
  const auto place = std::make_shared<MemberBarrier>(2);
  processes = start(files, place);
  EXPECT_EQ(save(), on_both("dir/ckpt-1"));
  EXPECT_THAT(files.file_paths(),
              ElementsAre("/dir/.cohort-writer.lock", "/dir/checkpoint",
                          "/dir/ckpt-1.data-00000-of-00001", "/dir/ckpt-1.index"));
  int created = 0;
  int locked = 0;
  for (const std::string& line : files.log()) {
    created += line.starts_with("creating ") ? 1 : 0;
    locked += line.starts_with("locking ") ? 1 : 0;
  }
  EXPECT_EQ(created, 3) << "data, index and state, each once";
  EXPECT_EQ(locked, 1) << "the others take no lock";
  EXPECT_LT(place->bytes(), kWeights * sizeof(float)) << "mirrored values do not travel";

  const internal::BundleReader bundle(files, "dir/ckpt-1");
  std::vector<std::string> names;
  for (const auto& [name, entry] : bundle.entries()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "rows/.ATTRIBUTES/VARIABLE_VALUE",
                                 "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                                 "strategy/replica_0/_state_var/.ATTRIBUTES/VARIABLE_VALUE",
                                 "strategy/replica_1/_state_var/.ATTRIBUTES/VARIABLE_VALUE",
                                 "weights/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_EQ(save(), on_both("dir/ckpt-2"));
  EXPECT_EQ(latest(), "dir/ckpt-2");
}

TEST_F(CheckpointGroupTest, EachTakesWhatIsItsOwn) {
  all([](Process& process) { return std::to_string(process.generator.next_u64()); });
  save();
  const auto words =
      all([](Process& process) { return std::to_string(process.generator.next_u64()); });
  EXPECT_NE(words[0], words[1]);
  const auto resumed = start(files);
  for (const auto& process : resumed) {
    process->weights->values.assign(kWeights, 0);
    process->rows->values = {0, 0};
  }
  EXPECT_EQ(all(resumed, [&](Process& process) { return restored(process, latest()); }),
            on_both("dir/ckpt-1"));
  EXPECT_EQ(all(resumed, [](Process& one) { return std::to_string(one.generator.next_u64()); }),
            words);
  for (const auto& process : resumed) EXPECT_EQ(process->weights->values[kWeights - 1], 1);
  EXPECT_THAT(resumed[0]->rows->values, ElementsAre(0, 1));
  EXPECT_THAT(resumed[1]->rows->values, ElementsAre(10, 11));
  EXPECT_EQ(resumed[1]->checkpoint.save_counter(), 1);
}

TEST_F(CheckpointGroupTest, AProcessAloneReadsWhatAGroupSaved) {
  save();
  const auto whole = numbers({0, 0, 0, 0});
  Checkpoint reader({{"rows", whole}});
  use_file_system(reader, files);
  reader.restore(latest()).expect_partial();
  EXPECT_THAT(whole->values, ElementsAre(0, 1, 10, 11));
}

TEST_F(CheckpointGroupTest, AnErrorOfTheWriterIsTheErrorOfAll) {
  save();
  const auto before = files.file_paths();
  files.set_capacity(4500);
  const auto errors = save();
  EXPECT_THAT(errors[0], HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(files.file_paths(), before);
  EXPECT_EQ(latest(), "dir/ckpt-1");
  files.set_capacity(1 << 20);
  EXPECT_EQ(save(), on_both("dir/ckpt-3"));
}

TEST_F(CheckpointGroupTest, AnErrorOfAnotherIsTheErrorOfAll) {
  save();
  const auto before = files.file_paths();
  processes[1]->rows->broken = true;
  EXPECT_EQ(save(), on_both("UNIMPLEMENTED: rows of this kind cannot be saved"));
  const auto tasks = all([](Process& process) {
    try {
      process.checkpoint.save("dir/ckpt");
    } catch (const Error& error) {
      return error.task();
    }
    return std::string("none");
  });
  EXPECT_EQ(tasks, on_both("task 1"));
  EXPECT_EQ(files.file_paths(), before);
  processes[1]->rows->broken = false;
  processes[0]->rows->broken = true;
  EXPECT_EQ(save(), on_both("UNIMPLEMENTED: rows of this kind cannot be saved"));
  EXPECT_EQ(latest(), "dir/ckpt-1");
}

TEST_F(CheckpointGroupTest, WhoDoesNotComeIsNamed) {
  processes = start(files, std::make_shared<MemberBarrier>(3));
  const auto errors = save({.group_timeout = std::chrono::milliseconds(30)});
  EXPECT_EQ(errors, on_both("DEADLINE_EXCEEDED: saving a checkpoint: beginning: still waiting for "
                            "task 2"));
  EXPECT_THAT(files.file_paths(), Not(Contains(HasSubstr("ckpt"))));
}

TEST_F(CheckpointGroupTest, OtherShapesAreAnotherProgram) {
  processes[1]->weights->values.resize(7);
  const auto errors = save();
  EXPECT_EQ(errors, on_both("INVALID_ARGUMENT: checkpoint value 'weights' is float32 [7] here, but "
                            "float32 [1000] at the process that writes; all must run one program"));
}

TEST_F(CheckpointGroupTest, ARestoreChangesAllOrNone) {
  save();
  processes[1]->weights->values.assign(7, 5);
  processes[0]->weights->values.assign(kWeights, 5);
  const auto errors = all([&](Process& one) { return restored(one, "dir/ckpt-1"); });
  EXPECT_THAT(errors[0], HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(errors[0], HasSubstr("weights"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(processes[0]->weights->values[0], 5);
}

TEST_F(CheckpointGroupTest, AllGoBackToOneCheckpoint) {
  save();
  save();
  const auto stale = files.after_kill();  // what another host's cache holds
  stale->set_content("/dir/ckpt-2.index", "damaged");
  use_file_system(processes[1]->checkpoint, *stale);
  const auto restore = [&](const RestoreOptions& options) {
    return all([&](Process& one) { return restored(one, "dir/ckpt-2", options); });
  };
  const auto errors = restore({});
  EXPECT_THAT(errors[0], HasSubstr("DATA_LOSS"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(restore({.fall_back = true}), on_both("dir/ckpt-1"));
  EXPECT_EQ(processes[0]->checkpoint.save_counter(), 1);
}

TEST_F(CheckpointGroupTest, TheWriterSaysWhatIsRestored) {
  save();
  const auto paths = all([&](Process& one) {
    return restored(one, one.group->is_writer() ? latest() : std::nullopt);
  });
  EXPECT_EQ(paths, on_both("dir/ckpt-1"));
}

TEST_F(CheckpointGroupTest, TheWriterSaysWhereTheCheckpointIs) {
  const auto paths = all([](Process& one) {
    return one.checkpoint.save(one.group->is_writer() ? "dir/ckpt" : "/tmp/not-the-chief/ckpt");
  });
  EXPECT_EQ(paths, on_both("dir/ckpt-1"));
  EXPECT_THAT(files.file_paths(), Not(Contains(HasSubstr("chief"))));
}

TEST_F(CheckpointGroupTest, ASaveInTheBackgroundIsOneMoment) {
  const CheckpointOptions async{.enable_async = true};
  EXPECT_EQ(save(async), on_both("dir/ckpt-1"));
  for (const auto& process : processes) process->rows->values = {7, 7};
  EXPECT_EQ(all([&](Process& process) { return restored(process, "dir/ckpt-1"); }),
            on_both("dir/ckpt-1"))
      << "which waits for the save";
  EXPECT_THAT(processes[1]->rows->values, ElementsAre(10, 11));

  files.set_capacity(10);
  EXPECT_EQ(save(async), on_both("dir/ckpt-2"));
  const auto wait = [](Process& process) {
    process.checkpoint.wait();
    return std::string("done");
  };
  const auto errors = all(wait);
  EXPECT_THAT(errors[0], HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(all(wait), on_both("done")) << "said once";
  processes[1]->rows->broken = true;
  EXPECT_THAT(save(async)[0], HasSubstr("UNIMPLEMENTED")) << "at once";
}

TEST_F(CheckpointGroupTest, ASaveInTheBackgroundMayFailByADeadline) {
  const auto wait = [](Process& process) {
    process.checkpoint.wait();
    return std::string("done");
  };
  files.set_hook([](const std::string& call) {
    if (call.starts_with("creating ")) throw DeadlineExceededError("the ps does not answer");
  });
  EXPECT_EQ(save({.enable_async = true}), on_both("dir/ckpt-1"));
  EXPECT_EQ(all(wait), on_both("DEADLINE_EXCEEDED: the ps does not answer"));
  EXPECT_EQ(all(wait), on_both("done")) << "said once";
  files.set_hook({});
  EXPECT_EQ(save({.enable_async = true}), on_both("dir/ckpt-2"));
  EXPECT_EQ(all(wait), on_both("done"));
  EXPECT_EQ(latest(), "dir/ckpt-2");
}

TEST_F(CheckpointGroupTest, ASaveThatIsUnderWayMayBeWaitedForAgain) {
  std::promise<void> may_go_on;
  files.set_hook([allowed = may_go_on.get_future().share()](const std::string& call) {
    if (!call.starts_with("creating ")) return;
    allowed.wait();
    throw DeadlineExceededError("the ps does not answer");
  });
  const auto wait = [](std::chrono::milliseconds timeout) {
    return [timeout](Process& process) {
      process.checkpoint.wait(timeout);
      return std::string("done");
    };
  };
  save({.enable_async = true});
  const std::string under_way =
      "DEADLINE_EXCEEDED: checkpoint 'dir/ckpt-1' is still being written after 1 ms; is the disk "
      "stuck?";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(all(wait(std::chrono::milliseconds(1))), on_both(under_way));
  }
  may_go_on.set_value();
  EXPECT_EQ(all(wait(std::chrono::seconds(20))),
            on_both("DEADLINE_EXCEEDED: the ps does not answer"));
  EXPECT_EQ(all(wait(std::chrono::seconds(20))), on_both("done"));
}

TEST_F(CheckpointGroupTest, TheManagersOfAllAgree) {
  int64_t step = 0;
  std::vector<CheckpointManager> managers;
  for (const auto& process : processes) {
    managers.emplace_back(
        process->checkpoint, "dir",
        CheckpointManagerOptions{
            .max_to_keep = 2, .checkpoint_interval = 10, .step_counter = [&] { return step; }});
  }
  const auto manager_of = [&](Process& process) -> CheckpointManager& {
    return managers[process.group->is_writer() ? 0 : 1];
  };
  const auto save_managed = [&] {
    return all([&](Process& process) { return manager_of(process).save().value_or("not yet"); });
  };
  for (int i = 1; i <= 3; ++i, step += 10) {
    EXPECT_EQ(save_managed(), on_both("dir/ckpt-" + std::to_string(i)));
    step += 1;
    EXPECT_EQ(save_managed(), on_both("not yet"));
  }
  for (const CheckpointManager& manager : managers) {
    EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-2", "dir/ckpt-3"));
    EXPECT_EQ(manager.latest_checkpoint(), "dir/ckpt-3");
  }
  EXPECT_FALSE(files.exists("dir/ckpt-1.index"));
  EXPECT_EQ(all([&](Process& one) { return *manager_of(one).restore_or_initialize(); }),
            on_both("dir/ckpt-3"));
}

TEST_F(CheckpointGroupTest, ASaveThatFailedAtTheWriterIsStillDueForAll) {
  int64_t step = 0;
  std::vector<CheckpointManager> managers;
  for (const auto& process : processes) {
    managers.emplace_back(
        process->checkpoint, "dir",
        CheckpointManagerOptions{.checkpoint_interval = 10, .step_counter = [&] { return step; }});
  }
  const auto save_managed = [&] {
    return all([&](Process& process) {
      const CheckpointManager& manager = managers[process.group->is_writer() ? 0 : 1];
      return manager.save({.checkpoint = {.group_timeout = std::chrono::seconds(20)}})
          .value_or("not yet");
    });
  };
  EXPECT_EQ(save_managed(), on_both("dir/ckpt-1"));
  step = 10;
  files.set_hook([](const std::string& call) {
    if (call.ends_with(" to 'dir/checkpoint'")) throw ResourceExhaustedError("no space");
  });
  EXPECT_EQ(save_managed(), on_both("RESOURCE_EXHAUSTED: no space"));
  files.set_hook({});
  step = 11;
  EXPECT_EQ(save_managed(), on_both("dir/ckpt-3"));
}

TEST_F(CheckpointGroupTest, ObjectsOfTwoGroupsAreRefused) {
  const Checkpoint mixed({{"a", processes[0]->strategy}, {"b", processes[1]->strategy}});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { mixed.save("dir/ckpt"); }),
              HasSubstr("objects 'a' and 'b' of one checkpoint belong to different groups of "
                        "processes (members 'task 0' and 'task 1')"));
}

TEST_F(CheckpointGroupTest, WhatOneProcessOnlyHasFromARestoreDoesNotHideAnothersValue) {
  // The writer waits for child "late" of a node that the other has already.
  const auto add_node = [&](Process& process, bool with_child) {
    const auto node = std::make_shared<Node>();
    node->awaits = true;
    if (with_child) node->add("late", numbers({1}));
    process.strategy->add("node", TrackableHandle(node));
    return node;
  };
  for (const auto& process : processes) add_node(*process, true);
  save();
  processes = start(files);
  add_node(*processes[0], false);
  const auto node = add_node(*processes[1], true);
  all([&](Process& process) { return restored(process, "dir/ckpt-1"); });
  std::static_pointer_cast<Numbers>(node->children[0].second)->values = {2};
  EXPECT_EQ(save(), on_both("dir/ckpt-2"));
  const internal::BundleReader bundle(files, "dir/ckpt-2");
  float value = 0;
  bundle.read("strategy/node/late/.ATTRIBUTES/VARIABLE_VALUE", &value);
  EXPECT_EQ(value, 2);
}

// Whose parts have their names by that.
TEST(GroupContribution, ASliceOfOtherDimensionsThanItsWholeIsRefused) {
  internal::ObjectGraph graph;
  graph.nodes.emplace_back();
  graph.nodes[0].attributes.push_back(
      {.name = kVariableValue, .full_name = "rows", .checkpoint_key = "rows"});
  const auto part = [](int starts, int lengths) {
    internal::WireWriter out;  // fields as group_contribution.cc has them
    out.bytes(1, "rows").varint(2, 1).varint(3, 1).bytes(4, "1234");
    for (int i = 0; i < starts; ++i) out.varint(6, 0);
    for (int i = 0; i < lengths; ++i) out.varint(7, 1);
    return out.varint(8, 2).str();
  };
  const auto add = [&](int starts, int lengths) {
    internal::Snapshot writers;
    writers.set_graph(internal::format_object_graph(graph));
    internal::WireWriter contribution;
    contribution.bytes(1, internal::format_object_graph(graph)).bytes(2, part(starts, lengths));
    internal::add_contribution(writers, contribution.str());
    return writers.parts().size();
  };
  EXPECT_EQ(add(1, 1), 1u);
  for (const auto& wrong : {std::pair(1, 0), std::pair(0, 1), std::pair(2, 2)}) {
    EXPECT_THAT(thrown<DataLossError>([&] { add(wrong.first, wrong.second); }),
                HasSubstr("a slice of other dimensions than its whole"))
        << wrong.first << ", " << wrong.second;
  }
}

}  // namespace
}  // namespace cohort::train
