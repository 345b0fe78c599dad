#include "cohort/core/structure/structure_call.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr CallSite kSite{
    .function = "the tested function", .argument = "thing", .input = "the tested input"};

template <class T>
Tensor scalar(T value) {
  return at::full({}, static_cast<double>(value), at::TensorOptions().dtype(number_dtype<T>()));
}

template <class Fn>
std::string called(Fn&& fn, const Structure& input) {
  return str(structure_function(std::forward<Fn>(fn), kSite)(input));
}

template <class Fn>
std::string refused(Fn&& fn, const Structure& input) {
  try {
    return called(std::forward<Fn>(fn), input);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
}

TEST(StructureCall, TakesTheWholeALeafOrTheMembers) {
  const Structure pair = tuple(scalar<int64_t>(2), StringTensor::scalar("b"));
  EXPECT_EQ(called([](const Structure& x) { return x; }, pair), "(2, \"b\")");
  EXPECT_EQ(called([](const Tensor& x, const StringTensor& s) { return tuple(s, x + 1); }, pair),
            "(\"b\", 3)");
  EXPECT_EQ(
      called([](Structure x, std::string_view s) { return std::pair(x, std::string(s) + "!"); },
             pair),
      "(2, \"b!\")");
  EXPECT_EQ(
      called([](float x, double y) { return x - y; }, tuple(scalar<float>(1), scalar<float>(3))),
      "-2.0");
  EXPECT_EQ(called([](const Tensor& x) { return x * 2; }, scalar<int64_t>(4)), "8");
  EXPECT_EQ(called([] { return 1; }, tuple()), "1");
}

TEST(StructureCall, UnpacksATupleOfOneForALeafAlone) {
  const Structure one = tuple(scalar<int64_t>(5));
  EXPECT_EQ(called([](int64_t x) { return x; }, one), "5");
  EXPECT_EQ(called([](const Tensor& x) { return x; }, one), "5");
  EXPECT_EQ(called([](const Structure& x) { return x; }, one), "(5,)");
}

TEST(StructureCall, MakesWhatAStructureOrItsTensorConvertsTo) {
  struct Batch {
    Batch(const Structure& structure) : size(structure.size()) {}
    size_t size;
  };
  struct Wrapped {
    Wrapped(const Tensor& tensor) : value(tensor) {}
    Tensor value;
  };
  EXPECT_EQ(called([](const Batch& x) { return static_cast<int64_t>(x.size); },
                   tuple(scalar<int64_t>(5))),
            "1");
  EXPECT_EQ(called([](std::optional<Tensor> x, const Wrapped& y) { return *x + y.value; },
                   tuple(scalar<int64_t>(2), scalar<int64_t>(3))),
            "5");
}

TEST(StructureCall, GenericFunctionsGetTheInputAsItIs) {
  EXPECT_EQ(called([](const auto& x) { return x[1]; }, tuple(1, 2)), "2");
}

TEST(StructureCall, SeveralAutosAreTheMembersAsTensors) {
  const Structure pair = tuple(scalar<int64_t>(2), scalar<int64_t>(5));
  EXPECT_EQ(called([](auto x, auto y) { return y.sub(x); }, pair), "3");
  EXPECT_EQ(called([](auto x, auto y, auto z) { return x.mul(y) - z; }, tuple(2, 3, 4)), "2");
  EXPECT_THAT(refused([](auto x, auto y) { return x + y; }, tuple(1, 2, 3)),
              HasSubstr("the tested function takes 2 things"));
  EXPECT_THAT(refused([](auto x, auto y) { return x + y; }, tuple(1, StringTensor({"a"}))),
              HasSubstr("argument 1 of the tested function is a number or Tensor"));
}

TEST(StructureCall, OneAutoComputesAsALeaf) {
  EXPECT_EQ(called([](auto x) { return x + 1; }, scalar<int64_t>(4)), "5");
  EXPECT_EQ(called([](const auto& x) { return 2 - x / x; }, scalar<double>(4)), "1.0");
  EXPECT_EQ(called([](auto&& x) { return x % 3 == 1; }, scalar<int64_t>(4)), "true");
  EXPECT_EQ(called([](auto x) { return x["a"] > x["b"]; }, dict({{"a", 1}, {"b", 2}})), "false");
}

struct Loss {
  Tensor sum;
  int64_t count = 0;
};
struct NestedLoss {
  Loss loss;
  std::vector<Tensor> parts;
};

TEST(StructureCall, StructsAndPairsTakeATuplesMembers) {
  const Structure pair = tuple(scalar<int64_t>(2), scalar<int64_t>(5));
  EXPECT_EQ(called([](const Loss& loss) { return loss.sum * loss.count; }, pair), "10");
  EXPECT_EQ(called([](std::pair<Tensor, int64_t> both) { return both.first - both.second; }, pair),
            "-3");
  EXPECT_EQ(called([](const Tensor& x, const Loss& loss) { return x + loss.sum + loss.count; },
                   tuple(1, pair)),
            "8");
  EXPECT_EQ(called([](const NestedLoss& both) { return both.loss.sum + both.parts[1]; },
                   tuple(pair, tuple(1, 7))),
            "9");
  EXPECT_EQ(called([](const std::tuple<Tensor>& one) { return std::get<0>(one) + 1; }, tuple(1)),
            "2");
  EXPECT_THAT(refused([](const Loss&) {}, tuple(1, 2, 3)),
              HasSubstr("argument 0 of the tested function has 2 members, but the tested input has "
                        "a tuple of 3 there"));
  EXPECT_THAT(refused([](const Loss&) {}, scalar<int64_t>(1)), HasSubstr("one leaf there: Tensor"));
}

TEST(StructureCall, FunctionsAreSharedNotCopied) {
  const auto counter = structure_function(
      [count = std::make_unique<int64_t>(0)](int64_t x) mutable { return *count += x; });
  const auto copy = counter;
  counter(scalar<int64_t>(1));
  EXPECT_EQ(str(copy(scalar<int64_t>(2))), "3");
}

struct Context {
  int64_t calls = 0;
};

TEST(StructureCall, TheContextGoesToThoseWhoAskForIt) {
  Context context;
  const auto asking = structure_function<Context>(
      [](Context& mine, const Tensor& x) { return x * ++mine.calls; }, kSite);
  const auto not_asking = structure_function<Context>([](const Tensor& x) { return x; }, kSite);
  const auto nothing_else =
      structure_function<const Context>([](const Context& mine) { return mine.calls; }, kSite);
  const Structure three = scalar<int64_t>(3);
  asking(context, three);
  EXPECT_EQ(str(asking(context, three)), "6");
  EXPECT_EQ(str(not_asking(context, three)), "3");
  EXPECT_EQ(str(nothing_else(context, tuple())), "2");
}

TEST(StructureCall, ValuesBesideOneStructureAreConvertedOneByOne) {
  Context context;
  const auto fn = [](const Tensor& x, double factor) { return (x * factor).item<double>(); };
  EXPECT_EQ(call_function(fn, kSite, context, Structure(scalar<double>(2)), 3), 6);
}

TEST(StructureCall, AVoidFunctionGivesTheEmptyTuple) {
  EXPECT_EQ(called([](const Tensor&) {}, scalar<int64_t>(1)), "()");
}

TEST(StructureCall, RefusesAnotherNumberOfMembers) {
  const auto two = [](const Tensor&, const Tensor&) {};
  EXPECT_THAT(refused(two, scalar<int64_t>(1)),
              HasSubstr("the tested function takes 2 things, but the tested input is one leaf: "
                        "TensorSpec(shape=(), dtype=int64)"));
  EXPECT_THAT(refused(two, tuple(1, 2, 3)), HasSubstr("is a tuple of 3: (TensorSpec"));
  EXPECT_THAT(refused(two, Tensor()), HasSubstr("is one leaf: undefined tensor"));
  EXPECT_THAT(refused([] {}, scalar<int64_t>(1)), HasSubstr("takes 0 things"));
}

TEST(StructureCall, MembersOfADictAreNotTakenByPosition) {
  const Structure labelled = dict({{"label", scalar<int64_t>(1)}, {"image", at::zeros({2})}});
  const std::string whole = "a dict with keys 'label', 'image': {";
  const std::string advice = "return tuple(x[\"label\"], x[\"image\"]); }";
  EXPECT_THAT(refused([](const Tensor& image, const Tensor&) { return image; }, labelled),
              AllOf(HasSubstr("the tested function takes 2 things by position, but the tested "
                              "input is " +
                              whole),
                    HasSubstr("a function of one Structure"), HasSubstr(advice)));
  EXPECT_THAT(refused([](auto image, auto) { return image; }, labelled), HasSubstr(advice));
  for (const std::string& error :
       {refused([](const std::pair<Tensor, Tensor>& both) { return both.first; }, labelled),
        refused([](const std::array<Tensor, 2>& both) { return both[0]; }, labelled),
        refused([](const Loss& loss) { return loss.sum; }, labelled),
        refused([](const std::vector<Tensor>& all) { return all[0]; }, labelled)}) {
    EXPECT_THAT(error, AllOf(HasSubstr("argument 0 of the tested function has 2 members, taken by "
                                       "position, but the tested input is " +
                                       whole),
                             HasSubstr(advice)));
  }
  EXPECT_THAT(refused([](const Tensor&, const Loss&) {}, tuple(1, labelled)), HasSubstr(advice));
  EXPECT_THAT(
      refused([](const Tensor&, const Tensor&) {}, dict({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}})),
      HasSubstr("return tuple(x[\"a\"], x[\"b\"], x[\"c\"], ...); }"));
  EXPECT_EQ(called([](const Structure& x) { return x["label"]; }, labelled), "1");
}

TEST(StructureCall, RefusesLeavesOfOtherKinds) {
  const auto numbers = [](const Structure&, const Tensor&) {};
  const auto strings = [](const Structure&, const StringTensor&) {};
  EXPECT_THAT(refused(numbers, tuple(1, StringTensor({"a"}))),
              AllOf(HasSubstr("argument 1 of the tested function is a number or Tensor"),
                    HasSubstr("the tested input has TensorSpec(shape=(1,), dtype=string)")));
  EXPECT_THAT(refused(strings, tuple(1, 2)),
              HasSubstr("argument 1 of the tested function is a string or StringTensor"));
}

TEST(StructureCall, ScalarsAreWidenedAndNeverNarrowed) {
  EXPECT_EQ(called([](double x) { return x; }, scalar<int32_t>(7)), "7.0");
  EXPECT_THAT(refused([](int32_t) {}, scalar<int64_t>(7)),
              AllOf(HasSubstr("argument 0 of the tested function is a int32"),
                    HasSubstr("the tested input has int64 []")));
  EXPECT_THAT(refused([](float) {}, at::zeros({2})), HasSubstr("float32 [2]"));
  EXPECT_THAT(refused([](std::string) {}, StringTensor({"a"})), HasSubstr("strings of shape [1]"));
}

TEST(ToStructure, TuplesPairsArraysAndVectorsBecomeTuples) {
  const Structure nested = to_structure(std::tuple(std::pair(1, std::string("a")),
                                                   std::array<Tensor, 1>{scalar<int64_t>(2)},
                                                   std::vector<Structure>{tuple(3), Structure()}));
  EXPECT_EQ(str(nested), "((1, \"a\"), (2,), ((3,), ()))");
}

TEST(ToStructure, PlainStructsBecomeTuples) {
  EXPECT_EQ(str(to_structure(Loss{scalar<int64_t>(2), 3})), "(2, 3)");
  EXPECT_EQ(str(to_structure(NestedLoss{{scalar<int64_t>(2), 3}, {scalar<int64_t>(1)}})),
            "((2, 3), (1,))");
}

TEST(Aggregate, CountsTheFieldsOfPlainStructsAlone) {
  struct Base {
    Tensor x;
  };
  struct Derived : Base {
    Tensor y;
  };
  struct Array {
    int64_t values[2];
  };
  struct Hidden {
    explicit Hidden(int64_t x) : value(x) {}
    int64_t value;
  };
  EXPECT_EQ(kFieldCount<Loss>, 2u);
  EXPECT_EQ(kFieldCount<Base>, 1u);
  EXPECT_EQ(kFieldCount<Derived>, 0u);
  EXPECT_EQ(kFieldCount<Array>, 0u);
  EXPECT_EQ(kFieldCount<Hidden>, 0u);
  EXPECT_EQ(kFieldCount<Tensor>, 0u);
}

TEST(ToStructure, ScalarsKeepTheirTypeOrTakeTheDefault) {
  EXPECT_EQ(to_structure(0.1).tensor().scalar_type(), float64);
  EXPECT_EQ(to_structure(0.1).tensor().item<double>(), 0.1);
  EXPECT_EQ(to_structure(int32_t{1}).tensor().scalar_type(), int32);
  EXPECT_EQ(to_structure(true).tensor().scalar_type(), boolean);
  EXPECT_EQ(to_structure<ScalarDtype::kDefault>(0.1).tensor().scalar_type(), float32);
  EXPECT_EQ(to_structure<ScalarDtype::kDefault>(int32_t{1}).tensor().scalar_type(), int64);
  EXPECT_EQ(to_structure("text").strings().item(), "text");
}

}  // namespace
}  // namespace cohort::internal
