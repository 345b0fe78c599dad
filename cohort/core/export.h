// COHORT_API marks what libcohort exports: the classes and functions of the headers that
// <cohort/cohort.h> reaches. All else is compiled with hidden visibility.
//
//   class COHORT_API Dataset { ... };
//   COHORT_API double value(const std::string& name);
//
// Templates, inline functions and structs of data need no mark. tests/checks/exports.py finds what
// lacks one.
#pragma once

#define COHORT_API [[gnu::visibility("default")]]
