#include "cohort/data/graph/graph.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::first_graph_difference;
using testing::HasSubstr;

TEST(Explain, IsATreeWithSpecsAndCardinalities) {
  const Dataset images = Dataset::from_tensor_slices(tuple(at::zeros({6, 2}), at::zeros({6})));
  const std::string row = internal::str(images.element_spec());
  const std::string batch = internal::str(images.batch(4).element_spec());
  EXPECT_EQ(
      Dataset::zip({images.batch(4), Dataset::range(3).repeat()}).prefetch(2).explain(),
      internal::str("prefetch(buffer_size=2): (", batch, ", ", Dataset::range(3).element_spec(),
                    "), 2 elements\n", "  zip(): (", batch, ", ", Dataset::range(3).element_spec(),
                    "), 2 elements\n", "    batch(batch_size=4): ", batch, ", 2 elements\n",
                    "      from_tensor_slices(rows=6, spec=", row, "): ", row, ", 6 elements\n",
                    "    repeat(count=-1): ", Dataset::range(3).element_spec(),
                    ", infinitely many elements\n", "      range(start=0, stop=3, step=1): ",
                    Dataset::range(3).element_spec(), ", 3 elements\n"));
}

TEST(Explain, SaysWhyASpecIsUnknown) {
  const Dataset failing = Dataset::range(1).map([](const Tensor& x) -> Tensor {
    throw NotFoundError("no such thing");
    return x;
  });
  const std::string text = failing.batch(2).explain();
  EXPECT_THAT(text, HasSubstr("map(): <unknown: map: element 0: no such thing>, 1 element\n"));
}

TEST(GraphDifference, NamesTheFirstNode) {
  EXPECT_EQ(first_graph_difference("a\n  b\n", "a\n  b\n"), std::nullopt);
  EXPECT_EQ(first_graph_difference("a(n=1)\n  b\n", "a(n=2)\n  c\n"),
            "where it has 'a(n=1)', this one has 'a(n=2)'");
  EXPECT_EQ(first_graph_difference("a\n  b\n", "a\n"), "where it has 'b', this one has nothing");
  EXPECT_EQ(first_graph_difference("", "a\n"), "where it has nothing, this one has 'a'");
}

}  // namespace
}  // namespace cohort::data
