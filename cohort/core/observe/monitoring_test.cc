#include "cohort/core/observe/monitoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

TEST(Monitoring, CountsByNameAndLabels) {
  EXPECT_EQ(monitoring::value("monitoring_test_counter", {"a"}), 0);
  internal::increase_counter("monitoring_test_counter", {"a"});
  internal::increase_counter("monitoring_test_counter", {"a"}, 4);
  internal::increase_counter("monitoring_test_counter", {"b"});
  EXPECT_EQ(monitoring::value("monitoring_test_counter", {"a"}), 5);
  EXPECT_EQ(monitoring::value("monitoring_test_counter", {"b"}), 1);
  EXPECT_EQ(monitoring::value("monitoring_test_counter"), 0);
}

TEST(Monitoring, AGaugeIsTheLastValue) {
  internal::set_gauge("monitoring_test_gauge", {}, 4);
  internal::set_gauge("monitoring_test_gauge", {}, 2);
  EXPECT_EQ(monitoring::value("monitoring_test_gauge"), 2);
}

TEST(Monitoring, ListsEverythingInOrder) {
  internal::increase_counter("monitoring_test_list", {"y"}, 2);
  internal::increase_counter("monitoring_test_list", {"x", "1"});
  std::vector<std::vector<std::string>> labels;
  for (const monitoring::Sample& sample : monitoring::samples()) {
    if (sample.name == "monitoring_test_list") labels.push_back(sample.labels);
  }
  EXPECT_THAT(labels, ElementsAre(ElementsAre("x", "1"), ElementsAre("y")));
}

}  // namespace
}  // namespace cohort
