#include "cohort/core/structure/string_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string printed_strings(const StringTensor& tensor) { return internal::str(tensor); }

TEST(StringTensorTest, HoldsItsValuesInRowMajorOrder) {
  const StringTensor tensor({"a", "bc", "", "d"}, {2, 2});
  EXPECT_THAT(tensor.sizes(), ElementsAre(2, 2));
  EXPECT_EQ(tensor.dim(), 2);
  EXPECT_EQ(tensor.size(1), 2);
  EXPECT_EQ(tensor.numel(), 4);
  EXPECT_EQ(tensor[0], "a");
  EXPECT_EQ(tensor[1], "bc");
  EXPECT_EQ(tensor[2], "");
  EXPECT_THAT(tensor.to_vector(), ElementsAre("a", "bc", "", "d"));
}

TEST(StringTensorTest, KeepsAnyBytes) {
  const std::string bytes("\0\xff\n", 3);
  EXPECT_EQ(StringTensor::scalar(bytes).item(), bytes);
}

TEST(StringTensorTest, SharesStringsThatAreThere) {
  const auto strings = std::make_shared<const std::vector<std::string>>(4, std::string(100, 'x'));
  const std::vector<std::string_view> views(strings->begin(), strings->end());
  StringTensor row;
  {
    const auto memory =
        std::make_shared<std::pair<decltype(strings), decltype(views)>>(strings, views);
    const auto tensor = StringTensor::over(memory, memory->second.data(), {2, 2});
    EXPECT_EQ(tensor.data()[3].data(), (*strings)[3].data());
    row = tensor.select(0, 1);
  }
  EXPECT_THAT(row.sizes(), ElementsAre(2));
  EXPECT_EQ(row[1].data(), (*strings)[3].data());
  EXPECT_EQ(StringTensor({"a", "b"}).slice(0, 1, 2).data()[0], "b");
  EXPECT_THROW(StringTensor::over(nullptr, nullptr, {-1}), InvalidArgumentError);
}

TEST(StringTensorTest, IsEmptyByDefault) {
  EXPECT_THAT(StringTensor().sizes(), ElementsAre(0));
  EXPECT_EQ(StringTensor().numel(), 0);
  EXPECT_THAT(StringTensor().to_vector(), ElementsAre());
  EXPECT_EQ(StringTensor(), StringTensor(std::vector<std::string>{}));
}

TEST(StringTensorTest, ScalarHasRankZero) {
  const StringTensor scalar = StringTensor::scalar("x");
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.item(), "x");
}

TEST(StringTensorTest, RefusesAShapeThatDoesNotFit) {
  const std::vector<std::string> two = {"a", "b"};
  EXPECT_THAT([&] { (void)(StringTensor(two, {3})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[3]")));
  EXPECT_THAT(
      [&] {
        (void)(StringTensor(two, {-1, -2}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[-1,-2]")));
  const int64_t half = int64_t{1} << 33;
  EXPECT_THAT(
      [&] {
        (void)(StringTensor(two, {half, half}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("int64")));
}

TEST(StringTensorTest, AnEmptyShapeMayHaveHugeSizes) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(StringTensor(std::vector<std::string>{}, {huge, huge, 0}).numel(), 0);
}

TEST(StringTensorTest, RefusesElementsThatDoNotExist) {
  const StringTensor tensor({"a", "b"});
  EXPECT_THAT([&] { (void)(tensor[2]); }, ThrowsMessage<OutOfRangeError>(HasSubstr("element 2")));
  EXPECT_THAT([&] { (void)(tensor[-1]); }, ThrowsMessage<OutOfRangeError>(HasSubstr("element -1")));
  EXPECT_THAT([&] { (void)(tensor.size(1)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("dimension 1")));
  EXPECT_THAT([&] { (void)(tensor.item()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[2]")));
}

TEST(StringTensorTest, SlicesShareBytes) {
  const StringTensor tensor({"a", "b", "c", "d", "e", "f"}, {3, 2});
  const StringTensor rows = tensor.slice(0, 1, 3);
  EXPECT_EQ(rows, StringTensor({"c", "d", "e", "f"}, {2, 2}));
  EXPECT_EQ(rows[0].data(), tensor[2].data());
  EXPECT_EQ(rows.slice(0, 1, 2), StringTensor({"e", "f"}, {1, 2}));
  EXPECT_THAT(tensor.slice(0, 2, 2).sizes(), ElementsAre(0, 2));
}

TEST(StringTensorTest, AViewOutlivesTheTensorThatItWasTakenFrom) {
  StringTensor row;
  {
    const StringTensor tensor({"first", "second"});
    row = tensor.select(0, 1);
  }
  EXPECT_EQ(row.item(), "second");
}

TEST(StringTensorTest, SelectDropsTheDimension) {
  const StringTensor tensor({"a", "b", "c", "d"}, {2, 2});
  EXPECT_EQ(tensor.select(0, 1), StringTensor({"c", "d"}));
  EXPECT_EQ(tensor.select(0, 1).select(0, 0), StringTensor::scalar("c"));
}

TEST(StringTensorTest, SlicingRefusesWhatIsNotThere) {
  const StringTensor tensor({"a", "b"});
  EXPECT_THAT([&] { (void)(tensor.slice(0, 1, 3)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("[1, 3)")));
  EXPECT_THAT([&] { (void)(tensor.slice(0, 2, 1)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("[2, 1)")));
  EXPECT_THAT([&] { (void)(tensor.slice(1, 0, 1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("dimension 0 only")));
  EXPECT_THAT([&] { (void)(tensor.select(0, 2)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("row 2")));
  EXPECT_THAT([&] { (void)(StringTensor::scalar("a").slice(0, 0, 1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

TEST(StringTensorTest, ReshapeKeepsTheElements) {
  const StringTensor tensor({"a", "b", "c", "d"});
  EXPECT_EQ(tensor.reshape({2, 2}), StringTensor({"a", "b", "c", "d"}, {2, 2}));
  EXPECT_EQ(tensor.slice(0, 1, 2).reshape({}).item(), "b");
  EXPECT_THAT([&] { (void)(tensor.reshape({3})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[3]")));
}

TEST(StringTensorTest, EqualityLooksAtShapeAndElements) {
  const StringTensor tensor({"a", "b"});
  EXPECT_EQ(tensor, StringTensor({"x", "a", "b"}).slice(0, 1, 3));
  EXPECT_FALSE(tensor == tensor.reshape({1, 2}));
  EXPECT_FALSE(tensor == StringTensor({"a", "c"}));
}

TEST(StackTest, AddsADimension) {
  const StringTensor tensor({"a", "b", "c", "d"});
  EXPECT_EQ(stack({tensor.slice(0, 2, 4), tensor.slice(0, 0, 2)}),
            StringTensor({"c", "d", "a", "b"}, {2, 2}));
  EXPECT_EQ(stack({StringTensor::scalar("x")}), StringTensor({"x"}));
  EXPECT_THAT([&] { (void)(stack({})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least one")));
  EXPECT_THAT(
      [&] {
        (void)(stack({tensor, StringTensor({"a"})}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("tensor 1")));
}

TEST(ConcatTest, JoinsAlongDimensionZero) {
  const StringTensor row({"a", "b"}, {1, 2});
  const StringTensor rows({"c", "d", "e", "f"}, {2, 2});
  EXPECT_EQ(concat({row, rows}), StringTensor({"a", "b", "c", "d", "e", "f"}, {3, 2}));
  EXPECT_EQ(concat({StringTensor(), StringTensor({"x"})}), StringTensor({"x"}));
  EXPECT_THAT([&] { (void)(concat({})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least one")));
  EXPECT_THAT(
      [&] {
        (void)(concat({row, StringTensor({"a"})}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("tensor 1")));
  EXPECT_THAT([&] { (void)(concat({StringTensor::scalar("a")})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

TEST(StringTensorPrintTest, NestsByShapeAndQuotes) {
  EXPECT_EQ(printed_strings(StringTensor({"a", "b\"c", "", "\n"}, {2, 2})),
            R"([["a", "b\"c"], ["", "\n"]])");
  EXPECT_EQ(printed_strings(StringTensor::scalar("x")), R"("x")");
  EXPECT_EQ(printed_strings(StringTensor()), "[]");
}

}  // namespace
}  // namespace cohort
