# Installs the headers that users include and what these include, and no others.
#
# cohort_include_dirs: where headers lie. cohort_install_dir: where they go.
cmake_minimum_required(VERSION 3.25)

set(waiting
    cohort/cohort.h
    cohort/data.h
    cohort/testing/allocation_counter.h
    cohort/testing/free_ports.h
    cohort/testing/multi_process_main.h
    cohort/testing/multi_process_runner.h)
set(found "")
while(waiting)
  list(POP_FRONT waiting header)
  if(header IN_LIST found)
    continue()
  endif()
  list(APPEND found ${header})
  unset(path)
  foreach(dir IN LISTS cohort_include_dirs)
    if(EXISTS ${dir}/${header})
      set(path ${dir}/${header})
    endif()
  endforeach()
  if(NOT path)
    message(FATAL_ERROR "no ${header} in ${cohort_include_dirs}")
  endif()
  get_filename_component(folder ${header} DIRECTORY)
  file(INSTALL ${path} DESTINATION ${cohort_install_dir}/${folder})
  file(STRINGS ${path} lines REGEX "^ *# *include +[\"<]cohort/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*[\"<](cohort/[^\">]+)[\">].*" "\\1" included "${line}")
    list(APPEND waiting ${included})
  endforeach()
endwhile()
