# cmake --install: what find_package(cohort) reads, the shared library and its headers, and of the
# command `cohort` and cohort::testing what was built. The target cohort_package builds all of it.
include(CMakePackageConfigHelpers)

set(cohort_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)

install(TARGETS cohort EXPORT cohortTargets)
install(EXPORT cohortTargets NAMESPACE cohort:: DESTINATION ${cohort_cmake_dir})

# With targets of their own, which cohortConfig.cmake leaves out where they were not built.
foreach(name testing testing_archive testing_alloc)
  set_target_properties(cohort_${name} PROPERTIES EXPORT_NAME ${name})
endforeach()
install(TARGETS cohort_testing cohort_testing_archive EXPORT cohortTestingTargets OPTIONAL)
install(TARGETS cohort_testing_alloc EXPORT cohortTestingAllocTargets OPTIONAL)
install(EXPORT cohortTestingTargets NAMESPACE cohort:: DESTINATION ${cohort_cmake_dir})
install(EXPORT cohortTestingAllocTargets NAMESPACE cohort:: DESTINATION ${cohort_cmake_dir})

add_custom_target(cohort_package DEPENDS cohort cohort_testing_archive cohort_testing_alloc)
if(TARGET cohort_command)
  install(TARGETS cohort_command OPTIONAL)
  add_dependencies(cohort_package cohort_command)
endif()

install(CODE "set(cohort_include_dirs \"${PROJECT_SOURCE_DIR}\" \"${PROJECT_BINARY_DIR}/include\")
set(cohort_install_dir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT cmake/InstallHeaders.cmake)

configure_package_config_file(cmake/cohortConfig.cmake.in cohortConfig.cmake
                              INSTALL_DESTINATION ${cohort_cmake_dir}
                              PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(cohortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake
              ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake cmake/FindLibtorch.cmake
              cmake/CohortPrecompile.cmake
        DESTINATION ${cohort_cmake_dir})
