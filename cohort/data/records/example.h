// tf.Example, TensorFlow's record of named features: parsing and building, without libtorch.
//
//   message Example   { Features features = 1; }
//   message Features  { map<string, Feature> feature = 1; }
//   message Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
//                                    Int64List int64_list = 3; } }
//
// each list one repeated field 1: bytes; float, int64, packed or not. And SequenceExample, with
// features of its own (the context) and lists of features, one a step:
//
//   message SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   message FeatureLists    { map<string, FeatureList> feature_list = 1; }
//   message FeatureList     { repeated Feature feature = 1; }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/function_ref.h"

namespace cohort::internal {

// The kinds, with the numbers of Feature's fields.
enum class FeatureKind : uint8_t { kNone = 0, kBytes = 1, kFloats = 2, kInts = 3 };

// "bytes", "float", "int64", "nothing".
std::string_view feature_kind_name(FeatureKind kind);

// The values of a feature, still as they stand in the message, which must outlive it.
// Errors of what reads them: DataLoss (not a message of this kind).
// Thread safety: immutable.
class FeatureView {
 public:
  FeatureView() = default;
  // Reads a message Feature. A kind that comes after another replaces it; lists of one kind are
  // joined.
  explicit FeatureView(std::string_view feature);

  FeatureKind kind() const { return kind_; }
  // No more than the bytes of the message.
  size_t count() const;
  // visit(value) for each, in order. The kind must be that of the call.
  void for_each_bytes(FunctionRef<void(std::string_view)> visit) const;
  // The first `most` of them; how many there were.
  size_t copy_floats(float* out, size_t most) const;
  size_t copy_ints(int64_t* out, size_t most) const;

 private:
  void for_each_list(FunctionRef<void(std::string_view list)> visit) const;

  std::string_view lists_;  // the message, from where the last kind begins
  FeatureKind kind_ = FeatureKind::kNone;
};

// visit(name, feature) for each feature of a serialized Example, or of the context of a serialized
// SequenceExample, in the order of the message; a name that comes twice is visited twice, and the
// last one counts.
// Errors: DataLoss (not an Example).
void for_each_feature(std::string_view example,
                      FunctionRef<void(std::string_view name, const FeatureView&)> visit);

// visit(name, list) for each feature list of a serialized SequenceExample, likewise.
// Errors: DataLoss (not a SequenceExample).
void for_each_feature_list(std::string_view sequence_example,
                           FunctionRef<void(std::string_view name, std::string_view list)> visit);
// visit(feature) for each step of such a list, in order. Errors: DataLoss.
void for_each_step(std::string_view list, FunctionRef<void(const FeatureView&)> visit);

}  // namespace cohort::internal
