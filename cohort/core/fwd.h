// Forward declarations of core's types, for headers that only name them.
#pragma once

namespace at {
class Tensor;
}
namespace cohort {
using Tensor = at::Tensor;
class Leaf;
class StringTensor;
class Structure;
class StructureSpec;
class TensorSpec;
class ThreadPool;
}  // namespace cohort
