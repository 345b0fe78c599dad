// The sections of the example, one file each.
#pragma once

#include <cohort/cohort.h>

namespace preprocessing {

// "Preprocessing with a custom training loop": a layer made under the scope, used by the dataset
// function of every input worker.
void in_the_dataset();

// Vocabularies in files, as the guide gives them to IntegerLookup and StringLookup; a vocabulary
// that is learned; and a lookup table without a layer.
void from_files();

// The same layer in the dataset and in the model: one result.
void in_the_model();

// Guide 001: words and answers to ids by models of strings, and a model that learns from them.
void words_to_predictions();

}  // namespace preprocessing
