// tf.SequenceExample records as dicts of tensors: features of the whole sequence, and lists with
// values for each step.
//
//   auto parsed = TFRecordDataset(files).batch(128).map([](const StringTensor& records) {
//     return io::parse_sequence_example(records, {{"label", io::FixedLenFeature({}, int64)}},
//                                       {{"words", io::RaggedFeature::strings()},
//                                        {"x", io::FixedLenSequenceFeature({3}, float32)}});
//   });                                  // parsed: (context, sequences, lengths)
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"

namespace cohort::io {

// `serialized`: a batch of records, shape [n]. The result is a tuple of three dicts:
//   the context      what parse_example gives for context_features (FixedLenFeature, VarLenFeature
//                    and RaggedFeature)
//   the sequences    an entry for each of sequence_features, in their order:
//     FixedLenSequenceFeature  [n, most steps, shape..], filled up
//     VarLenFeature            {"values": [n, most steps, most values], "lengths": int64
//                              [n, most steps]}, filled up
//     RaggedFeature            a RaggedTensor of steps of values; partitions divide those of a step
//   the lengths      int64 [n] for each of the first two: how many steps are the example's own
// Only a FixedLenSequenceFeature without allow_missing must be in every record; other lists that
// are missing have no steps. Each step of a FixedLenSequenceFeature has the values of its shape.
//
// Thread safety: any thread; meant for maps over batches.
// Errors: as parse_example; InvalidArgument (a kind of feature that has no place there; lists of
// one feature that differ in steps).
COHORT_API Structure parse_sequence_example(const StringTensor& serialized,
                                            const ExampleFeatures& context_features,
                                            const ExampleFeatures& sequence_features = {});

// The same of one record, shape []: a tuple of the context and the sequences, without the dimension
// n. Errors: as above.
COHORT_API Structure parse_single_sequence_example(const StringTensor& serialized,
                                                   const ExampleFeatures& context_features,
                                                   const ExampleFeatures& sequence_features = {});

// What these return for batches, or for one record.
COHORT_API StructureSpec sequence_example_spec(const ExampleFeatures& context_features,
                                               const ExampleFeatures& sequence_features,
                                               bool batched);

}  // namespace cohort::io
