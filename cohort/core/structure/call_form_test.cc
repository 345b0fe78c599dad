#include "cohort/core/structure/call_form.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace cohort::internal {
namespace {

struct Context {
  int id = 3;
};
struct Batch {
  Tensor x;
  Tensor y;
};

template <class... Values, class Fn>
constexpr CallFault fault(const Fn&) {
  return kCallFault<Fn, Context, Values...>;
}

TEST(CallForm, TakesFunctionsOfEveryForm) {
  constexpr CallFault kNone = CallFault::kNone;
  EXPECT_EQ(fault<Structure>([](const Tensor&, int64_t) {}), kNone);
  EXPECT_EQ(fault<Structure>([](Context&, const Tensor&) {}), kNone);
  EXPECT_EQ(fault<Structure>([](const Batch&) {}), kNone);
  EXPECT_EQ(fault<Structure>([](std::pair<Tensor, std::string>) {}), kNone);
  EXPECT_EQ(fault<Structure>([](auto x) { return x; }), kNone);
  EXPECT_EQ(fault<Structure>([](auto& x) { return x; }), kNone);
  EXPECT_EQ(fault<Structure>([](Context& context, auto x) { return x + context.id; }), kNone);
  EXPECT_EQ(fault<Structure>([](Context&, auto x, auto y) { return x.matmul(y); }), kNone);
  EXPECT_EQ((fault<Tensor, double>([](auto x, auto y) { return x.mul(y); })), kNone);
  EXPECT_EQ((fault<Tensor, int>([](Context&, const Tensor& x, double y) { return x * y; })), kNone);
}

TEST(CallForm, KnowsWhyAFunctionCannotBeCalled) {
  EXPECT_EQ(fault<std::optional<Structure>>([](const Tensor&, const Tensor&) {}),
            CallFault::kOptional);
  EXPECT_EQ(fault<std::optional<Structure>>([](const Structure&) {}), CallFault::kOptional);
  EXPECT_EQ(fault<std::optional<double>>([](std::optional<double>) {}), CallFault::kNone);
  EXPECT_EQ(fault<Structure>([](Tensor&) {}), CallFault::kReference);
  EXPECT_EQ((fault<Tensor, Tensor>([](const Tensor&) {})), CallFault::kCount);
  EXPECT_EQ(fault<Tensor>([](const std::string&) {}), CallFault::kArgument);
  EXPECT_EQ(fault<Structure>([](Tensor*) {}), CallFault::kParameter);
  EXPECT_EQ(fault<Tensor>([](auto, auto) {}), CallFault::kGeneric);
  EXPECT_EQ(fault<Tensor>(3), CallFault::kNoFunction);
  EXPECT_EQ(fault<Tensor>(Tensor()), CallFault::kNoFunction);
}

}  // namespace
}  // namespace cohort::internal
