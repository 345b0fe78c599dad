// Tasks that do not agree: what the checked backends refuse, and what a group knows of its tasks.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <utility>

#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/sync_group.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(CommunicatorConformance, OtherCallsAreRefusedOnAllTasksAndTheGroupGoesOn) {
  if (!GetParam().is_checked) return;  // what CheckedCommunicator is for
  const Communicators members = make(2);
  std::vector<float> floats[2] = {{1, 2}, {1, 2}};
  std::vector<double> doubles{1, 2};
  const auto expect_refused = [&](const std::function<void(Communicator&)>& fn, const char* first,
                                  const char* second) {
    const auto errors = run_tasks(members, fn);
    for (const auto& error : errors) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr(first));
      EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr(second));
    }
  };
  expect_refused(
      [&](Communicator& member) {
        all_reduce(member, buffer_over(floats[member.rank()], float32),
                   {.name = member.rank() == 0 ? "losses" : "accuracy"});
      },
      "'losses'", "'accuracy'");
  expect_refused(
      [&](Communicator& member) {
        if (member.rank() == 0) return member.barrier({.name = "x"});
        all_reduce(member, buffer_over(floats[1], float32), {.name = "x"});
      },
      "barrier 'x'", "all_reduce 'x' of 2 float32");
  expect_refused(
      [&](Communicator& member) {
        if (member.rank() == 0) {
          return all_reduce(member, buffer_over(doubles, float64), {.name = "x"});
        }
        all_reduce(member, buffer_over(floats[1], float32), {.name = "x"});
      },
      "2 float64", "2 float32");
  expect_refused(
      [&](Communicator& member) {
        all_reduce(member, buffer_over(floats[member.rank()], float32),
                   {.name = "x", .signature = member.rank() == 0 ? "[1, 2]" : "[2, 1]"});
      },
      "[1, 2]", "[2, 1]");
  expect_refused(
      [&](Communicator& member) {
        BufferPool pool(member);
        GatheredBytes all(pool);
        const char bytes[] = {1, 2, 3};
        if (member.rank() == 0) return member.gather_bytes(bytes, all, {.name = "rows"});
        all_reduce(member, buffer_over(floats[1], float32), {.name = "x"});
      },
      "gather_bytes 'rows'", "all_reduce 'x' of 2 float32");
  EXPECT_THAT(floats[0], ElementsAre(1, 2));  // nothing has moved
  expect_none(run_tasks(members, [&](Communicator& member) {
    all_reduce(member, buffer_over(floats[member.rank()], float32), {.name = "x"});
  }));
  EXPECT_THAT(floats[1], ElementsAre(2, 4));
}

TEST_P(CommunicatorConformance, AnotherGenerationIsRefused) {
  if (!GetParam().is_checked) return;
  class Later final : public Communicator {  // a task that missed the forming of the group
   public:
    explicit Later(std::shared_ptr<Communicator> backend) : backend_(std::move(backend)) {}
    int rank() const override { return backend_->rank(); }
    int size() const override { return backend_->size(); }
    int64_t generation() const override { return backend_->generation() + 1; }
    bool compares_fingerprints(int64_t bytes) const override {
      return backend_->compares_fingerprints(bytes);
    }
    Buffer buffer(int64_t bytes) override { return backend_->buffer(bytes); }
    std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                     const CallOptions& options) override {
      return backend_->all_reduce(buffers, options);
    }
    std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                         std::span<const int64_t> counts,
                                         const CallOptions& options) override {
      return backend_->reduce_scatter(buffers, counts, options);
    }
    std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers,
                                     std::span<const int64_t> counts,
                                     const CallOptions& options) override {
      return backend_->all_gather(buffers, counts, options);
    }
    std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                    const CallOptions& options) override {
      return backend_->broadcast(buffers, root, options);
    }
    void barrier(const CallOptions& options) override { backend_->barrier(options); }
    void abort(const std::exception_ptr& reason) noexcept override { backend_->abort(reason); }

   private:
    std::shared_ptr<Communicator> backend_;
  };
  Communicators members = make_in_process_communicators(2, 4);
  members[1] = std::make_shared<Later>(members[1]);
  for (const auto& error : run_tasks(checked_all(members),
                                     [](Communicator& member) { member.barrier({.name = "x"}); })) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                HasSubstr("task 0 is in generation 4 of the group, task 1 in 5"));
  }
}

TEST_P(CommunicatorConformance, GroupsKnowAllReplicas) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    // The group does not own the test's member.
    const std::shared_ptr<Communicator> borrowed(&member, [](Communicator*) {});
    SyncGroup group(member.rank() == 0 ? 2 : 1, std::chrono::nanoseconds(0), borrowed);
    const GroupView& view = *group.view();
    EXPECT_EQ(view.num_replicas(), 3);
    EXPECT_EQ(view.first_replica(), member.rank() == 0 ? 0 : 2);

    std::vector<Tensor> mine;
    for (int i = 0; i < view.num_local_replicas(); ++i) {
      mine.push_back(at::full({view.first_replica() + i + 1}, view.first_replica() + i, int64));
    }
    const std::vector<Tensor> all = all_replicas_values(group, mine, "rows");
    ASSERT_EQ(all.size(), 3u);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(all[static_cast<size_t>(i)].numel(), i + 1);
      EXPECT_EQ(all[static_cast<size_t>(i)][0].item<int64_t>(), i);
    }
    const Tensor from_first = at::full({2}, member.rank() + 5.0);
    take_from_first_task(group, from_first, "weights");
    EXPECT_EQ(from_first[1].item<double>(), 5.0);
    EXPECT_THAT(all_tasks_values(group, member.rank() * 10, "status"), ElementsAre(0, 10));
  }));
}

}  // namespace
}  // namespace cohort::collective
