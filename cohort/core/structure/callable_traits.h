// The arguments and the result of a callable type. Templates at the edge of the library need them
// before they hand over to type-erased code.
//
//   using Traits = CallableTraits<decltype([](const Tensor& x, int64_t n) { return x; })>;
//   static_assert(Traits::kArity == 2);
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace cohort::internal {

template <class Callable>
struct CallableTraits;

template <class R, class... Args>
struct CallableTraits<R(Args...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<Args>...>;
  static constexpr size_t kArity = sizeof...(Args);
  // Whether parameter i binds to no const value: a T& or T&&.
  static constexpr bool kChangesArgument[sizeof...(Args) + 1] = {
      (std::is_reference_v<Args> && !std::is_const_v<std::remove_reference_t<Args>>)..., false};
};
template <class R, class... Args>
struct CallableTraits<R (*)(Args...)> : CallableTraits<R(Args...)> {};
template <class R, class... Args>
struct CallableTraits<R (&)(Args...)> : CallableTraits<R(Args...)> {};
template <class R, class C, class... Args>
struct CallableTraits<R (C::*)(Args...)> : CallableTraits<R(Args...)> {};
template <class R, class C, class... Args>
struct CallableTraits<R (C::*)(Args...) const> : CallableTraits<R(Args...)> {};
template <class R, class C, class... Args>
struct CallableTraits<R (C::*)(Args...) noexcept> : CallableTraits<R(Args...)> {};
template <class R, class C, class... Args>
struct CallableTraits<R (C::*)(Args...) const noexcept> : CallableTraits<R(Args...)> {};

// An object with one call operator: a lambda, a std::function, a functor.
template <class Callable>
requires requires { &std::remove_cvref_t<Callable>::operator(); }
struct CallableTraits<Callable>
    : CallableTraits<decltype(&std::remove_cvref_t<Callable>::operator())> {};

// False for generic lambdas and overloaded call operators, whose arguments nobody can list.
template <class Callable>
concept HasCallableTraits = requires {
  CallableTraits<Callable>::kArity;
};

}  // namespace cohort::internal
