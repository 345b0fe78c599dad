#include "cohort/cluster/elastic/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/elastic/testing_elastic.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::elastic {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ElasticRecord, SaysWhoHasTheStateAndWhoHasNot) {
  const Record some = record(7, {member(0, 41), member(1, kNoStep), member(3, 42), member(5, 42)});
  EXPECT_EQ(some.step(), 42);
  EXPECT_THAT(some.holders(), ElementsAre(2, 3));
  EXPECT_THAT(some.behind(), ElementsAre(0));
  EXPECT_THAT(some.comers(), ElementsAre(1));
  EXPECT_EQ(some.rank_of(worker(3), 13), 2u);
  EXPECT_EQ(some.rank_of(worker(3), 14), std::nullopt);
  EXPECT_EQ(some.rank_of(worker(2), 12), std::nullopt);
}

TEST(ElasticRecord, AtFirstNobodyHasAState) {
  const Record first = record(1, {member(0, kNoStep), member(1, kNoStep)});
  EXPECT_EQ(first.step(), kNoStep);
  EXPECT_THAT(first.holders(), ElementsAre(0, 1));
  EXPECT_THAT(first.behind(), IsEmpty());
  EXPECT_THAT(first.comers(), IsEmpty());
}

TEST(ElasticRecord, WhoLeavesMayHaveTheLastState) {
  Record some = record(7, {member(0, 41)});
  some.leavers.push_back(member(1, 42));
  EXPECT_EQ(some.step(), 42);
  EXPECT_THAT(some.holders(), IsEmpty());
  EXPECT_EQ(describe(some),
            "record 7 of generation 1, step 42: /job:worker/task:0; /job:worker/task:1 leaves");
}

TEST(ElasticRecord, ArrivesAsItWas) {
  Record some = record(7, {member(0, 41), member(1, kNoStep)});
  some.previous = 6;
  some.leavers.push_back(member(2, 40));
  some.leavers[0].standing.leaves = true;
  some.leavers[0].standing.reached = 41;
  EXPECT_EQ(Record::decode(some.encode()), some);
  const Proposal sent{.proposer = member(3, 12), .known = some};
  const Proposal proposal = Proposal::decode(sent.encode());
  EXPECT_EQ(proposal.proposer, sent.proposer);
  EXPECT_EQ(proposal.known, some);
  EXPECT_EQ(Proposal::decode(Proposal{.proposer = member(3, 12)}.encode()).known, std::nullopt);
}

TEST(ElasticRecord, WhatContradictsItselfIsRefused) {
  const auto refused = [](const Record& wrong, const std::string& why) {
    expect_error<DataLossError>([&] { Record::decode(wrong.encode()); }, why);
  };
  refused(record(7, {}), "has no members");
  refused(record(0, {member(0, 1)}), "has no number");
  refused(record(7, {member(1, 1), member(0, 1)}), "in a wrong order");
  refused(record(7, {member(1, 1), member(1, 1)}), "in a wrong order");
  refused(record(7, {member(0, 1, "p"), member(1, 1, "q")}), "has members of two programs");
  refused(record(int64_t{1} << 60, {member(0, 1)}), "has a number that is too large");
  refused(record(7, {member(0, -2)}), "has a step that is none");
  Record old = record(7, {member(0, 1)});
  old.previous = 7;
  refused(old, "comes before its predecessor");
  expect_error<DataLossError>([] { Proposal::decode("\x0a\x7f"); }, "a proposal for a group");
  expect_error<DataLossError>([] { Proposal::decode(""); }, "a task without a name");
}

}  // namespace
}  // namespace cohort::internal::elastic
