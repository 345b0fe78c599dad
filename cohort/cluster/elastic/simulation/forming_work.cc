// What the tasks of a simulation do: steps, each of which is finished when all members have done
// their part of it, and groups between them.
#include <algorithm>

#include "cohort/cluster/elastic/simulation/forming_world.h"

namespace cohort::internal::elastic {
namespace {

using std::chrono::milliseconds;

}  // namespace

void FormingWorld::form(Life& life) {
  if (life.record) board_of(life).given_up = true;
  Standing mine{.step = life.step, .reached = life.reached, .program = life.program};
  mine.leaves = life.wants_to_leave && life.record.has_value();
  life.standings.push_back(mine);
  life.forms = true;
  trace(name_of(life), " asks for a group, step ", mine.step, ", reached ", mine.reached,
        mine.leaves ? ", to leave" : "");
  life.group->start_form(mine,
                         [this, &life](const std::exception_ptr& error, const Record& record) {
                           if (!life.process.ended()) formed(life, error, record);
                         });
}

void FormingWorld::formed(Life& life, const std::exception_ptr& error, const Record& record) {
  if (!error) check_record(life, record);
  life.has_failed = error != nullptr;
  life.forms = false;
  if (!error) return take(life, record);
  const ErrorRecord what = record_error(error);
  trace(name_of(life), " gets no group: ", what.message);
  if (life.agent->error()) return;  // it ends with that
  if (what.code == Code::kFailedPrecondition) {
    ++result_.refused;
  } else if (life.standings.back().leaves && what.code == Code::kUnavailable) {
    return life.agent->start_leave("", milliseconds(500),
                                   [this, &life] { end_life(life, "it left"); });
  } else {
    violate(str(name_of(life), " gets no group: ", what.message));
  }
  end_life(life, what.message);
}

void FormingWorld::take(Life& life, const Record& record) {
  trace(name_of(life), " is in ", describe(record));
  life.last_number = record.number;
  const auto rank = record.rank_of({"worker", life.node}, life.incarnation);
  if (!rank) {
    ++result_.leavers;
    life.agent->start_leave("", milliseconds(500), [this, &life] { end_life(life, "it left"); });
    return;
  }
  life.record = record;
  life.reached = life.step;        // a step that is not committed is done again
  if (record.step() == kNoStep) {  // all begin
    life.step = life.reached = 0;
  } else if (life.step < record.step()) {
    // The state comes from one that has it, or that one is lost first.
    return later(life, milliseconds(1), milliseconds(20), [this, &life] {
      if (life.group->must_form() || board_of(life).given_up) return form(life);
      ++(life.step == kNoStep ? result_.comers : result_.behind);
      life.step = life.reached = life.record->step();
      work(life);
    });
  }
  work(life);
}

void FormingWorld::work(Life& life) {
  later(life, milliseconds(2), milliseconds(25), [this, &life] { go(life); });
}

// A task learns between its actions that a member is lost, or that another one has learned it.
void FormingWorld::go(Life& life) {
  Board& board = board_of(life);
  if (life.group->must_form() || board.given_up) return form(life);
  const size_t size = life.record->members.size();
  const auto done = [&](const auto& entry) { return entry.second > life.step; };
  if (life.reached == life.step) {
    reach(life);
  } else if (static_cast<size_t>(std::count_if(board.reached.begin(), board.reached.end(), done)) ==
             size) {
    finish_step(life);
    if (board.form_at >= 0 && life.step >= board.form_at) return form(life);
  }
  work(life);
}

void FormingWorld::reach(Life& life) {
  const Record& record = *life.record;
  Board& board = board_of(life);
  const size_t rank = *record.rank_of({"worker", life.node}, life.incarnation);
  life.reached = life.step + 1;
  board.reached[rank] = life.reached;
  // The first member's answer goes with its part of the step to all others.
  if (rank == 0 && board.form_at < 0 && life.group->somebody_waits()) board.form_at = life.reached;
  if (board.reached.size() < record.members.size()) return;
  for (const auto& [other, reached] : board.reached) {
    if (reached < life.reached) return;
  }
  ++result_.steps;
  check_group_step(life);
}

void FormingWorld::finish_step(Life& life) {
  life.step = life.reached;
  if (life.wants_to_leave) life.group->ask_to_form();
}

}  // namespace cohort::internal::elastic
