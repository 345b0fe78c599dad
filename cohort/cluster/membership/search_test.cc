// Tests who may decide for an elastic cluster, and to whose service a task turns.
#include "cohort/cluster/membership/search.h"

#include <gtest/gtest.h>

#include "cohort/cluster/membership/majority.h"

namespace cohort::internal::membership {
namespace {

TaskId worker(int index) { return {"worker", index}; }

// Workers 0, 1, ... in the states that the letters say: here, away, gone.
bool majority(const std::string& states) {
  Membership group;
  for (size_t i = 0; i < states.size(); ++i) {
    group.members.push_back({worker(static_cast<int>(i)), 10 + i});
  }
  return is_majority(group, [&](const Session& session) {
    const char state = states[static_cast<size_t>(session.task.index)];
    return state == 'h' ? Presence::kHere : state == 'a' ? Presence::kAway : Presence::kGone;
  });
}

TEST(Majority, IsMoreThanHalfOrHalfWithTheFirst) {
  EXPECT_TRUE(majority("hha"));
  EXPECT_FALSE(majority("haa"));
  EXPECT_TRUE(majority("haah"));
  EXPECT_FALSE(majority("ahha"));
  EXPECT_TRUE(majority("ha"));
  EXPECT_FALSE(majority("ah"));
}

TEST(Majority, DoesNotCountThoseThatAreGone) {
  EXPECT_TRUE(majority("gh"));
  EXPECT_TRUE(majority("gha"));  // half, with the first of the rest
  EXPECT_FALSE(majority("gah"));
  EXPECT_TRUE(majority("gggh"));
  EXPECT_TRUE(majority("ggg"));  // nobody objects
}

// Two sides that have nobody in common, each of which may know of some that are gone.
TEST(Majority, OfTwoSidesThereIsOneAtMost) {
  for (int size = 1; size <= 5; ++size) {
    int cases = 1;
    for (int i = 0; i < size; ++i) cases *= 6;
    for (int number = 0; number < cases; ++number) {
      std::string left;
      std::string right;
      for (int rest = number, i = 0; i < size; ++i, rest /= 6) {
        // Members of one side, of the other, of none; gone and known to one side, to the other, to both.
        constexpr const char* kLeft = "haagag";
        constexpr const char* kRight = "ahaagg";
        left += kLeft[rest % 6];
        right += kRight[rest % 6];
      }
      const bool somebody_lives =
          left.find('h') != std::string::npos && right.find('h') != std::string::npos;
      EXPECT_FALSE(somebody_lives && majority(left) && majority(right)) << left << ' ' << right;
    }
  }
}

Standing searches(int64_t term) { return {.stage = Stage::kSearches, .term_seen = term}; }
Standing holds(int64_t term, uint64_t service, bool agreed = true) {
  return {.stage = Stage::kHolds,
          .term_seen = term,
          .service = service,
          .term = term,
          .agreed = agreed};
}

SearchInput input(int self, std::map<TaskId, Standing> standings) {
  return {.self = worker(self),
          .term_seen = 3,
          .service = 7,
          .may_prepare = true,
          .standings = std::move(standings),
          .is_complete = true};
}

TEST(Search, TheFirstThatSearchesPreparesAService) {
  const std::map<TaskId, Standing> both = {{worker(1), searches(3)}, {worker(2), searches(3)}};
  EXPECT_TRUE(decide(input(1, both)).prepare);
  EXPECT_EQ(decide(input(1, both)).turn_to, worker(1));
  EXPECT_EQ(decide(input(2, both)).turn_to, std::nullopt);
}

TEST(Search, MembersComeBeforeThoseThatHaveSeenNoGroup) {
  SearchInput comer = input(0, {{worker(0), searches(0)}, {worker(1), searches(3)}});
  comer.term_seen = 0;
  EXPECT_FALSE(decide(comer).prepare);
  EXPECT_TRUE(decide(input(1, comer.standings)).prepare);
}

TEST(Search, TheServiceOfAGroupComesBeforeOneThatIsPrepared) {
  const Standing prepares{.stage = Stage::kPrepares, .term_seen = 3};
  EXPECT_EQ(decide(input(1, {{worker(0), prepares}, {worker(1), searches(3)}})).turn_to, worker(0));
  EXPECT_EQ(
      decide(input(1, {{worker(0), prepares}, {worker(1), searches(3)}, {worker(2), holds(4, 9)}}))
          .turn_to,
      worker(2));
}

TEST(Search, AnEarlierGroupIsNone) {
  EXPECT_EQ(decide(input(1, {{worker(0), holds(2, 5)}, {worker(1), searches(3)}})).turn_to,
            worker(1));
  // Its own, which it has found again; another of the same term.
  EXPECT_EQ(decide(input(1, {{worker(0), holds(3, 7)}, {worker(1), searches(3)}})).turn_to,
            worker(0));
  EXPECT_EQ(decide(input(1, {{worker(0), holds(3, 8)}, {worker(1), searches(3)}})).turn_to,
            worker(1));
  // What it knows of later terms has come to nothing.
  SearchInput late = input(1, {{worker(0), holds(2, 5)}, {worker(1), searches(3)}});
  late.waits_long = true;
  EXPECT_EQ(decide(late).turn_to, worker(0));
}

TEST(Search, NobodyTakesOverFromAServiceThatOthersObey) {
  const Standing obeys{.stage = Stage::kObeys, .term_seen = 3};
  EXPECT_EQ(decide(input(0, {{worker(0), searches(3)}, {worker(1), obeys}})).turn_to, std::nullopt);
}

TEST(Search, AServiceThatDoesNotCountGivesWay) {
  const Standing waits = holds(3, 7, false);
  EXPECT_TRUE(gives_way(worker(0), waits, false, worker(1), holds(4, 9)));
  EXPECT_FALSE(gives_way(worker(0), waits, false, worker(1), holds(4, 9, false)));
  EXPECT_TRUE(gives_way(worker(0), waits, true, worker(1), holds(4, 9, false)));
  EXPECT_FALSE(gives_way(worker(0), waits, false, worker(1), holds(2, 9)));
  EXPECT_FALSE(gives_way(worker(0), holds(3, 7), true, worker(1), holds(4, 9, false)));
  EXPECT_TRUE(gives_way(worker(0), holds(3, 7), false, worker(1), holds(4, 9)));
}

}  // namespace
}  // namespace cohort::internal::membership
