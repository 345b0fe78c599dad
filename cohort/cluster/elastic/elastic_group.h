// The agreement of tasks on the group that they are: the survivors of a loss form it again, and
// tasks that come join it, when all of its members ask for it.
//
//   elastic::ElasticGroup group(server.membership().agent(),
//                               {.group = {.name = "strategy", .min_tasks = 2}, .log = log_line});
//   elastic::Record record = group.form({.step = 41, .reached = 42, .program = digest});
//   ...                                   // take the state of record.step() from a holder; steps
//   if (group.somebody_waits()) ...       // at the first member: tell the others; then all form
//   if (group.must_form()) ...            // a member is gone, say: form
//
// docs/membership.md, "Elastic groups: forming", says how and why it is safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cohort/cluster/elastic/elastic_options.h"
#include "cohort/cluster/elastic/record.h"
#include "cohort/cluster/membership/agent.h"

namespace cohort::internal::elastic {

class ElasticCore;

// One in each task for each group, which has the same name in all of them. The agent outlives it.
// Thread safety: any thread.
class ElasticGroup {
 public:
  // Errors: InvalidArgument (the name).
  ElasticGroup(membership::MembershipAgent& agent, ElasticOptions options);
  // Ends form() with Cancelled.
  ~ElasticGroup();
  ElasticGroup(const ElasticGroup&) = delete;
  ElasticGroup& operator=(const ElasticGroup&) = delete;

  // Proposes this task, and waits until there is a record for which it has been proposed by this
  // call, whose members are all alive. Begins anew by itself when another task is lost or comes
  // meanwhile. With `leaves` the record does not count this task among its members.
  // Errors: DeadlineExceeded (names who is alive and does not propose), Unavailable (fewer than
  // min_tasks for `patience`, names who is gone; too few stay if this task leaves),
  // FailedPrecondition (the others have another program; a call is under way already),
  // InvalidArgument (`mine`), what ended the membership. After an error others may still get a
  // record with this task that was being committed.
  Record form(const Standing& mine);
  // The same without waiting: `done` is called once, on any thread.
  void start_form(const Standing& mine, Formed done);

  // Whether other tasks are a group already, which this one may join. Waits some seconds where the
  // membership began without this task, and another service has just taken over.
  // Errors: those of the store.
  bool is_formed() const;

  // Whether a task waits for the members to form. Only the first member of the current record gets
  // to know; it costs no call.
  bool somebody_waits() const;
  // Lets somebody_waits() become true, for a member that wants to leave: at the next form() it says
  // `leaves`. Returns at once.
  void ask_to_form();

  // The record that form() has given last.
  std::optional<Record> current() const;
  // Whether its members must form again: one of them is not alive any more, or another service
  // coordinates the membership, whose store knows of no group. It costs no call.
  bool must_form() const;
  // Its members that are not alive any more, lost or left; without a record, or where this task
  // itself is in no group just now: none.
  std::vector<TaskId> lost() const;

 private:
  const std::shared_ptr<ElasticCore> core_;
};

}  // namespace cohort::internal::elastic
