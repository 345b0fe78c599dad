# Finds oneDNN, whose primitives plans are made of. It is not linked: the library is loaded at run
# time, in a scope of its own (cohort/ops/plan/onednn_functions.h says why).
#
# Hints: -DOneDNN_ROOT=DIR, where DIR holds include/ and lib/.
# Result: the imported target OneDNN::OneDNN, OneDNN_VERSION.
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

if(OneDNN_INCLUDE_DIR)
  file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h OneDNN_version_lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3"
         OneDNN_VERSION "${OneDNN_version_lines}")
endif()

# The name that the loader knows the library by: libdnnl.so.2 in Debian 12, libdnnl.so.3.7 in 13.
if(OneDNN_LIBRARY)
  execute_process(COMMAND ${CMAKE_READELF} --dynamic --wide ${OneDNN_LIBRARY}
                  OUTPUT_VARIABLE OneDNN_dynamic_section ERROR_QUIET)
  if(OneDNN_dynamic_section MATCHES "SONAME[^\n]*\\[([^]\n]+)\\]")
    set(OneDNN_SONAME ${CMAKE_MATCH_1})
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR OneDNN_SONAME
                                  VERSION_VAR OneDNN_VERSION HANDLE_VERSION_RANGE)

if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  # A libtorch of a wheel has headers of its own oneDNN, and its folder comes before the system's,
  # which no option can name. So these get a folder of their own, and not as a system's: those come
  # last.
  set(OneDNN_only_include_dir ${CMAKE_BINARY_DIR}/onednn)
  file(MAKE_DIRECTORY ${OneDNN_only_include_dir})
  file(CREATE_LINK ${OneDNN_INCLUDE_DIR}/oneapi ${OneDNN_only_include_dir}/oneapi SYMBOLIC)
  add_library(OneDNN::OneDNN INTERFACE IMPORTED)
  set_target_properties(
    OneDNN::OneDNN PROPERTIES SYSTEM OFF
                              INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_only_include_dir}
                              INTERFACE_COMPILE_DEFINITIONS
                              COHORT_ONEDNN_LIBRARY="${OneDNN_SONAME}"
                              INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
  # Where the loader would not look by itself.
  get_filename_component(OneDNN_library_dir ${OneDNN_LIBRARY} DIRECTORY)
  if(NOT OneDNN_library_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    target_link_options(OneDNN::OneDNN INTERFACE "LINKER:-rpath,${OneDNN_library_dir}")
  endif()
endif()
