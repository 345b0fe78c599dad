// Calls a function with the members of a structure. This is the one place where a user's function
// meets type-erased code: steps, functions on elements, modules, and functions called by name.
//
//   StructureFunction<> scale = structure_function(
//       [](const Tensor& x, int64_t factor) { return x * factor; },
//       {.function = "the step function", .input = "the batch"});
//   Structure result = scale(tuple(x, 2));
//
// A function takes the structure itself (a dict always so), or a leaf's value, or as many
// parameters as a tuple has members. A parameter is a Structure, Tensor, StringTensor, a number (of
// exactly the dtype or one that holds all of its values), std::string_view or std::string, a
// std::tuple, pair or plain struct of such, or what a structure or its tensor converts to. A
// function of one leaf also takes a tuple of one member. A function may ask for a context first,
// where the caller has one: a ReplicaContext&, say. `auto` as the only parameter is the structure
// as it is; several are the members, which are tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/call_form.h"
#include "cohort/core/structure/callable_traits.h"
#include "cohort/core/structure/from_structure.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/to_structure.h"

namespace cohort::internal {

template <class Form, class Fn, class Context, size_t... kIndex, class... Values>
decltype(auto) call_values(Fn& fn, [[maybe_unused]] const CallSite& site,
                           [[maybe_unused]] Context& context, std::index_sequence<kIndex...>,
                           const Values&... values) {
  using Parameters = typename Form::Parameters;
  if constexpr (Form::kTakesContext) {
    return fn(context,
              to_parameter<std::tuple_element_t<kIndex, Parameters>>(values, kIndex, site)...);
  } else {
    return fn(to_parameter<std::tuple_element_t<kIndex, Parameters>>(values, kIndex, site)...);
  }
}

template <class Form, class Fn, class Context, size_t... kIndex>
decltype(auto) call_members(Fn& fn, const CallSite& site, Context& context,
                            std::index_sequence<kIndex...> indices, const Structure& input) {
  check_member_count(input, sizeof...(kIndex), site);
  return call_values<Form>(fn, site, context, indices, input[kIndex]...);
}

// Calls fn with the parameters of a form, taken from one Structure or from as many values.
template <class Form, class Fn, class Context, class... Values>
decltype(auto) call_with_form(Fn& fn, const CallSite& site, Context& context,
                              const Values&... values) {
  using Parameters = typename Form::Parameters;
  constexpr size_t kCount = std::tuple_size_v<Parameters>;
  constexpr auto kIndices = std::make_index_sequence<kCount>();
  if constexpr (!kIsOneStructure<Values...>) {
    return call_values<Form>(fn, site, context, kIndices, values...);
  } else if constexpr (kCount != 1) {
    return call_members<Form>(fn, site, context, kIndices, values...);
  } else if constexpr (kTakesLeaf<std::tuple_element_t<0, Parameters>>) {
    return call_values<Form>(fn, site, context, kIndices, sole_value(values)...);
  } else {
    return call_values<Form>(fn, site, context, kIndices, values...);
  }
}

// Calls fn with the context, if it asks for one first, and with the parameters that it declares,
// taken from `values`.
// Errors: InvalidArgument (a structure does not fit the parameters), what fn throws.
template <class Fn, class Context, class... Values>
decltype(auto) call_function(Fn& fn, const CallSite& site, Context& context,
                             const Values&... values) {
  using Form = CallForm<Fn, Context, Values...>;
  if constexpr (Form::kAsItIs) {
    if constexpr (Form::kTakesContext) {
      return fn(context, values...);
    } else {
      return fn(values...);
    }
  } else {
    return call_with_form<Form>(fn, site, context, values...);
  }
}

// ---- type-erased --------------------------------------------------------------------------------

// A function of one structure, after a context or none. Copies share the function. A default one
// holds none. A class of its own and no std::function, which costs four times as much compile time
// for each lambda.
// Thread safety: that of the function.
template <class... Context>
class StructureFunction {
 public:
  class Body {
   public:
    virtual ~Body() = default;
    virtual Structure call(Context&... context, const Structure& input) = 0;
  };

  StructureFunction() = default;
  // Takes the body over.
  explicit StructureFunction(Body* body) : body_(body) {}

  Structure operator()(Context&... context, const Structure& input) const {
    return body_->call(context..., input);
  }
  explicit operator bool() const { return body_ != nullptr; }
  // Owns the body, and points at a part of it.
  std::shared_ptr<void> share(void* part) const { return {body_, part}; }

 private:
  std::shared_ptr<Body> body_;
};

// fn, as the body of an erased one.
template <class Fn, class... Context>
class FunctionBody : public StructureFunction<Context...>::Body {
 public:
  static_assert(sizeof...(Context) <= 1);

  template <class From>
  FunctionBody(From&& fn, const CallSite& site) : fn(static_cast<From&&>(fn)), site_(site) {}

  Structure call(Context&... context, const Structure& input) override {
    if constexpr (sizeof...(Context) == 0) {
      return result(kNoContext, input);
    } else {
      return result(context..., input);
    }
  }

  Fn fn;

 private:
  template <class C>
  Structure result(C& context, const Structure& input) {
    if constexpr (std::is_void_v<decltype(call_function(fn, site_, context, input))>) {
      call_function(fn, site_, context, input);
      return Structure();
    } else {
      return to_structure(call_function(fn, site_, context, input));
    }
  }

  const CallSite site_;
};

// fn, erased: its result becomes a structure, that of a void function the empty tuple.
// Copies share one fn, which need not be copyable. Thread safety: that of fn.
template <class... Context, class Fn>
StructureFunction<Context...> structure_function(Fn&& fn, const CallSite& site = {}) {
  using Callable = std::decay_t<Fn>;
  check_call<Callable, CallContext<Context...>, Structure>();
  if constexpr (kCallFault<Callable, CallContext<Context...>, Structure> == CallFault::kNone) {
    return StructureFunction<Context...>(
        new FunctionBody<Callable, Context...>(static_cast<Fn&&>(fn), site));
  } else {
    return {};
  }
}

}  // namespace cohort::internal
