// Forms the group of an elastic strategy by the membership of a cluster: the survivors of a loss,
// and tasks that come.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/cluster/elastic/elastic_group.h"
#include "cohort/distribute/strategies/elastic_strategy.h"
#include "cohort/distribute/strategies/group_connection.h"

namespace cohort::internal {

class ClusterFormer final : public GroupFormer {
 public:
  struct Options {
    std::shared_ptr<TaskServer> server;
    TaskId self;
    std::string group;    // the strategy's, the same on all tasks
    std::string program;  // what must be equal on all tasks
    int min_workers = 1;
    std::chrono::nanoseconds timeout;
    distribute::experimental::CommunicationOptions communication_options = {};
  };
  explicit ClusterFormer(Options options);

  Formed form(const Standing& mine) override;
  bool has_lost_a_task() override;
  bool must_form() override { return members_.must_form(); }
  bool somebody_waits() override { return members_.somebody_waits(); }
  // Whether others are a group already, which this task may join.
  bool is_formed() const { return members_.is_formed(); }

  // The group as it was formed last. Thread safety: any thread.
  struct Group {
    std::vector<TaskId> workers;
    int rank = 0;
    GroupConnection connection;
  };
  Group group() const;

 private:
  const Options options_;
  elastic::ElasticGroup members_;
  mutable std::mutex mutex_;
  Group group_;  // guarded by mutex_
};

}  // namespace cohort::internal
