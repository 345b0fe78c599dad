# cohort_precompile_headers(TARGET ...): compiles <cohort/cohort.h> once for each of these targets of
# yours, instead of once for each of its sources. That takes as long as some three sources and pays
# from about four on, or where sources are compiled again and again.
#
#   find_package(cohort REQUIRED)
#   add_executable(train train.cc model.cc)
#   target_link_libraries(train PRIVATE cohort::cohort)
#   cohort_precompile_headers(train)
#
# Targets with the same options can share one: target_precompile_headers(other REUSE_FROM train).
function(cohort_precompile_headers)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} PRIVATE <cohort/cohort.h>)
  endforeach()
endfunction()
