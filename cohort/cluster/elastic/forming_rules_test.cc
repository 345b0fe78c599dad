#include "cohort/cluster/elastic/forming_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/elastic/testing_elastic.h"

namespace cohort::internal::elastic {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const GroupOptions kOptions{.name = "g"};

Proposal proposal(int index, int64_t step, std::optional<Record> known = {},
                  const std::string& program = "p") {
  return {.proposer = member(index, step, program), .known = std::move(known)};
}

std::vector<TaskId> members_of(const Verdict& verdict) {
  std::vector<TaskId> tasks;
  if (!verdict.next) return tasks;
  for (const RecordMember& one : verdict.next->members) tasks.push_back(one.task);
  return tasks;
}

TEST(FormingRules, TheFirstGroupWaitsForEverybodyWhoIsAlive) {
  const Verdict early = judge(view(3, {2}), kOptions, {}, {proposal(0, kNoStep)}, false);
  EXPECT_THAT(early.missing, ElementsAre(worker(1)));
  EXPECT_EQ(early.next, std::nullopt);
  const Verdict whole =
      judge(view(3, {2}), kOptions, {}, {proposal(1, kNoStep), proposal(0, kNoStep)}, false);
  EXPECT_THAT(members_of(whole), ElementsAre(worker(0), worker(1)));
  EXPECT_EQ(whole.next->number, 1);
  EXPECT_EQ(whole.next->generation, 4);
}

TEST(FormingRules, SurvivorsDoNotWaitForComersAndTakeThoseThatPropose) {
  const Record last = record(5, {member(0, 7), member(1, 8)});
  const Verdict without =
      judge(view(4, {0}), kOptions, last, {proposal(1, 8), proposal(3, kNoStep)}, false);
  EXPECT_THAT(members_of(without), ElementsAre(worker(1), worker(3)));
  EXPECT_EQ(without.next->number, 6);
  EXPECT_EQ(without.next->previous, 5);
  const Verdict early =
      judge(view(4), kOptions, last, {proposal(1, 8), proposal(3, kNoStep)}, false);
  EXPECT_THAT(early.missing, ElementsAre(worker(0)));
}

TEST(FormingRules, AnotherProcessOfATaskIsAComer) {
  const Record last = record(5, {member(0, 7), member(1, 8)});
  membership::View all = view(2);
  all.members[0].incarnation = 77;
  EXPECT_THAT(members_of(judge(all, kOptions, last, {proposal(1, 8)}, false)),
              ElementsAre(worker(1)));
}

TEST(FormingRules, WhereNobodyOfTheLastGroupIsThereAllBeginTogether) {
  const Record last = record(5, {member(0, 7), member(1, 8)});
  const membership::View all = view(4, {0, 1});
  EXPECT_THAT(judge(all, kOptions, last, {proposal(3, kNoStep, {}, "new")}, false).missing,
              ElementsAre(worker(2)));
  const Verdict verdict =
      judge(all, kOptions, last, {proposal(2, kNoStep, {}, "new"), proposal(3, kNoStep, {}, "new")},
            false);
  EXPECT_THAT(members_of(verdict), ElementsAre(worker(2), worker(3)));
  EXPECT_EQ(verdict.next->number, 6);  // it never falls
}

TEST(FormingRules, ANewServiceLearnsFromWhatTheProposersKnow) {
  const Record old = record(5, {member(0, 7), member(1, 8)});
  const Record newer = record(6, {member(1, 8), member(2, kNoStep)});
  membership::View all = view(4);
  all.term = 2;
  // 0 does not know of the record in which 2 is; 1 does.
  const Verdict early =
      judge(all, kOptions, {}, {proposal(0, 7, old), proposal(1, 8, newer)}, false);
  EXPECT_THAT(early.missing, ElementsAre(worker(2)));
  EXPECT_EQ(early.last, newer);
  const Verdict verdict =
      judge(all, kOptions, {}, {proposal(0, 7, old), proposal(1, 8, newer), proposal(2, 9)}, false);
  EXPECT_THAT(members_of(verdict), ElementsAre(worker(0), worker(1), worker(2)));
  EXPECT_EQ(verdict.next->number, 1'000'001);  // whatever an earlier service has counted
  EXPECT_EQ(verdict.next->step(), 9);
  // At first those are waited for, too, whom nobody knows.
  EXPECT_THAT(judge(all, kOptions, {}, {proposal(1, 8, newer), proposal(2, 9)}, true).missing,
              ElementsAre(worker(0), worker(3)));
}

// Two services may have begun the same term, each without knowledge of the other.
TEST(FormingRules, TheStoresGroupIsWaitedForAlsoWhereALaterOneIsKnown) {
  const Record stored = record(5, {member(0, 7)});
  const Record other = record(8, {member(1, 3), member(2, 3)});
  const Verdict early = judge(view(3, {2}), kOptions, stored, {proposal(1, 3, other)}, false);
  EXPECT_THAT(early.missing, ElementsAre(worker(0)));
  const Verdict verdict =
      judge(view(3, {2}), kOptions, stored, {proposal(0, 7), proposal(1, 3, other)}, false);
  EXPECT_THAT(members_of(verdict), ElementsAre(worker(0), worker(1)));
  EXPECT_EQ(verdict.next->number, 9);
  EXPECT_EQ(verdict.next->step(), 7);
}

TEST(FormingRules, AnotherProgramIsRefusedAndNobodyWaitsForIt) {
  const Record last = record(5, {member(1, 8)});
  const Verdict verdict =
      judge(view(2), kOptions, last, {proposal(0, kNoStep, {}, "q"), proposal(1, 8)}, false);
  EXPECT_THAT(members_of(verdict), ElementsAre(worker(1)));
  EXPECT_THAT(verdict.refused, ElementsAre(worker(0)));
  EXPECT_EQ(verdict.program, "p");
  // At the start the first task's is the one that counts.
  const Verdict first =
      judge(view(2), kOptions, {}, {proposal(0, kNoStep, {}, "q"), proposal(1, 8)}, false);
  EXPECT_THAT(first.refused, ElementsAre(worker(1)));
}

TEST(FormingRules, FewerThanTheLeastFormNoGroup) {
  const GroupOptions two{.name = "g", .min_tasks = 2};
  const Record last = record(5, {member(0, 7), member(1, 8)});
  const Verdict verdict = judge(view(2, {0}), two, last, {proposal(1, 8)}, false);
  EXPECT_THAT(verdict.missing, IsEmpty());
  EXPECT_EQ(verdict.next, std::nullopt);
}

TEST(FormingRules, OnlyTasksOfTheGroupsJobsCount) {
  membership::View all = view(1);
  all.members.insert(
      all.members.begin(),
      {{.task = {"evaluator", 0},
        .incarnation = 3,
        .state = membership::TaskState::kAlive,
        .observer = true},
       {.task = {"ps", 0}, .incarnation = 4, .state = membership::TaskState::kAlive}});
  EXPECT_THAT(members_of(judge(all, kOptions, {}, {proposal(0, kNoStep)}, false)),
              ElementsAre(worker(0)));
}

TEST(FormingRules, WhoLeavesIsNoMember) {
  const Record last = record(5, {member(0, 7), member(1, 8)});
  Proposal leaver = proposal(0, 8);
  leaver.proposer.standing.leaves = true;
  const Verdict verdict = judge(view(2), kOptions, last, {leaver, proposal(1, 7)}, false);
  EXPECT_THAT(members_of(verdict), ElementsAre(worker(1)));
  EXPECT_EQ(verdict.next->leavers.size(), 1u);
  EXPECT_EQ(verdict.next->step(), 8);
}

}  // namespace
}  // namespace cohort::internal::elastic
