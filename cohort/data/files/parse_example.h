// tf.Example records as dicts of tensors.
//
//   auto parsed = TFRecordDataset(files).batch(128).map([](const StringTensor& records) {
//     return io::parse_example(records, {{"image", io::FixedLenFeature::strings()},
//                                        {"label", io::FixedLenFeature({}, int64)}});
//   });
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"

namespace cohort::io {

// `serialized`: one record (shape []) or a batch (shape [n]). The result is a dict of one entry for
// each of `features`, in that order:
//   FixedLenFeature  a leaf of shape [shape...], of a batch [n, shape...]
//   FixedLenSequenceFeature
//                    [rows, shape..], of a batch [n, most rows, shape..], filled up
//   VarLenFeature    {"values": shape [k], of a batch [n, k], where k is the most values that an
//                     example has, and the others are filled up with 0 or "";
//                     "lengths": int64, shape [], of a batch [n]: how many are the example's own}
//   RaggedFeature    a RaggedTensor; without partitions of one record its values, [k]
//   SparseFeature    a sparse tensor [size..], of a batch [n, size..]
// VarLenFeature differs from TensorFlow's, which gives sparse tensors also of strings. Partitions
// of ragged tensors are always checked, and a sparse tensor has one value at a place.
//
// Features that are not asked for are passed over. A name that an example has twice counts as the
// last one. Thread safety: any thread; meant for maps over batches.
// Errors: InvalidArgument (a feature is missing and has no default; has another number of values,
// or values of another type; partitions or indices do not fit the values; `serialized` has another
// rank; a dtype other than int64 and float32; a default of another shape or dtype; a name twice),
// DataLoss (a record is no tf.Example), ResourceExhausted (a batch's padded values would take more
// than 1 GiB): with the name of the feature and the index of the record.
COHORT_API Structure parse_example(const StringTensor& serialized, const ExampleFeatures& features);

// What parse_example returns for one record, or for batches.
COHORT_API StructureSpec example_spec(const ExampleFeatures& features, bool batched);

}  // namespace cohort::io
