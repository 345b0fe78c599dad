// What an ElasticGroup is made with.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "cohort/cluster/elastic/forming_rules.h"
#include "cohort/cluster/elastic/record.h"
#include "cohort/cluster/membership/settings.h"

namespace cohort::internal::elastic {

using membership::Duration;

struct ElasticOptions {
  GroupOptions group = {};
  // How long a member waits for those that are alive and do not propose; anew after each change of
  // the membership.
  Duration deadline = std::chrono::minutes(1);
  // The same for a task that has come, and waits until the members form.
  Duration join_deadline = std::chrono::minutes(10);
  // How long fewer than min_tasks wait for more.
  Duration patience = std::chrono::minutes(10);
  // How long the survivors of a lost service wait for tasks that are alive and whom none of them
  // knows: they may know of a later record, and may as well be comers that do not propose yet.
  Duration settle = std::chrono::milliseconds(200);
  // Lines that a person wants to see: whom a task waits for, every 10 s.
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// How a call of form() has ended: with an error, or with a record.
using Formed = std::function<void(std::exception_ptr, const Record&)>;

}  // namespace cohort::internal::elastic
