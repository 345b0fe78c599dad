// The processes that save and restore as one: one of them writes, and the others bring what only
// they have. train::Checkpoint asks its objects for their group, so users never branch on rank.
//
//   class Shared : public train::Trackable {
//     std::shared_ptr<train::SaveGroup> save_group() const override { return group_; }
//     ...
//   };
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"

namespace cohort::train {

struct SaveGroupCall {
  std::string name;  // "saving 'dir/ckpt-3': the outcome"; the same on every member
  std::chrono::milliseconds timeout;
};

// One implementation per transport; it knows nothing of checkpoints. It must ensure that the bytes
// it receives come from members of the group.
//
// gather and barrier are collective: every member calls the same ones in the same order, and each
// call returns when all members have made it. Errors of both, on all members that came:
// DeadlineExceeded (after call.timeout; names call.name and who did not come), Unavailable (a
// member was lost; names it), FailedPrecondition (members make different calls, as far as it is
// noticed).
// Thread safety: one thread at a time.
class SaveGroup {
 public:
  virtual ~SaveGroup() = default;

  // True for exactly one member.
  virtual bool is_writer() const = 0;
  // The name of this member, for messages: "/job:worker/task:1"; empty if there is only one member.
  virtual std::string name() const = 0;
  // On the writer: what each member brought, by rank. On the others: empty.
  virtual std::vector<std::string> gather(std::string brought, const SaveGroupCall& call) = 0;
  // Returns the `words` of the writer; those of the others are ignored.
  virtual std::string barrier(std::string words, const SaveGroupCall& call) = 0;

  // Makes `call`, which is collective and gives all members the same bytes. A group that goes on
  // where it loses a member makes it again, or returns what other members have got.
  virtual std::string repeatable(FunctionRef<std::string()> call) { return call(); }

  // All members have saved, and are at the same place of the program: lets those join that have
  // come and wait, after `before`. Collective.
  virtual void admit(FunctionRef<void()> before) { (void)before; }
  // Joins the others where they run already and this member has just come: waits until they have
  // saved, calls `restore`, which gets what they have saved, and joins. False: it is one of them.
  virtual bool join(FunctionRef<void()> restore) {
    (void)restore;
    return false;
  }

  // Called by every member before it copies its values: as long as the result lives, which is until
  // they are copied, nothing changes them. Where nothing else does anyway: nothing.
  // Errors: DeadlineExceeded, with which the save fails.
  virtual std::shared_ptr<void> hold_values(std::chrono::milliseconds) { return nullptr; }
  // The checkpoint `path` was saved, at the writer, or restored. On any thread.
  virtual void completed(const std::string& path) { (void)path; }
};

// The group of a process that is alone: its writer.
COHORT_API const std::shared_ptr<SaveGroup>& alone();

}  // namespace cohort::train
