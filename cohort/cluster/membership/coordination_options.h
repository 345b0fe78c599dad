// What a CoordinationService is made of, and the numbers of its methods.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/membership/roster.h"
#include "cohort/cluster/membership/store.h"

namespace cohort::internal::membership {

struct CoordinationOptions {
  uint64_t incarnation = 0;  // of this service: random, not 0
  TaskId self;               // the task that it runs in
  RosterOptions roster;
  std::string cluster_spec;      // printed; every task's must be equal
  std::vector<Section> program;  // of this task: what others' are compared with
  // The group fails if it is not complete by then.
  Duration start_timeout = std::chrono::minutes(10);
  // How often the log says who is missing.
  Duration report_missing_every = std::chrono::seconds(10);
  StoreLimits store;
  std::function<void(const std::string&)> log = [](const std::string&) {};
  // Writes lines that only help to look for a fault.
  std::function<void(const std::string&)> detail = [](const std::string&) {};
  // After each new version of status(). On any thread, with no lock held.
  std::function<void()> on_change = [] {};
};

struct CoordinationMethod {
  enum Number : size_t {
    kRegister,
    kHeartbeat,
    kWatch,
    kAttend,
    kLeave,
    kReport,
    kDeclare,
    kBarrier,
    kGet,
    kSet,
    kAdd,
    kCompareAndSet,
    kRemove,
    kList,
    kStatus,
    kStanding,  // of every task of an elastic cluster (elastic_service.h)
  };
};

}  // namespace cohort::internal::membership
