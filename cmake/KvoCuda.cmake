# Decides KVO_HAVE_CUDA from KVO_CUDA and the nvcc at hand: one on the machine, else the one that
# tools/scripts/cuda-toolchain has put into the build folder. Only cuda/ looks at it.
set(KVO_HAVE_CUDA OFF)
if(NOT KVO_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KVO_CUDA is '${KVO_CUDA}'; it must be AUTO, ON or OFF")
endif()
if(KVO_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: switched off, cuda/ is built for the host only")
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  file(GLOB installed "${PROJECT_SOURCE_DIR}/build/cuda-toolchain/lib/python3*/site-packages/nvidia/cu13")
  find_program(KVO_NVCC nvcc
    HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda ${installed} PATH_SUFFIXES bin)
  mark_as_advanced(KVO_NVCC)
  if(KVO_NVCC)
    set(CMAKE_CUDA_COMPILER "${KVO_NVCC}")
  endif()
endif()
# One fat binary: machine code for 80 and 90, and PTX for 80 that the driver translates for others.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES "80;90-real")
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(KVO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "KVO_CUDA is ON, but no working nvcc was found. Put nvcc into PATH, or set "
      "CUDACXX to its full name, or use -DKVO_CUDA=AUTO to go on without.")
  endif()
  message(STATUS "CUDA: not found, cuda/ is built for the host only")
  return()
endif()

enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  if(KVO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "KVO_CUDA is ON, but nvcc ${CMAKE_CUDA_COMPILER_VERSION} knows no C++20; "
      "12.0 or later is needed")
  endif()
  message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION} knows no C++20, "
    "cuda/ is built for the host only")
  return()
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc 12 has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(KVO_HAVE_CUDA ON)
# What the host compiler needs to call the runtime.
add_library(kvo_cuda_headers INTERFACE)
target_include_directories(kvo_cuda_headers SYSTEM INTERFACE
  ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
