# libdrey-cuda, where CUDA's compiler is: units on CUDA devices, opened at run time (src/unit/opencl/opencl.h). It needs no
# more than the driver where it runs. Code for the architectures named, which fits the later ones of the same generation,
# and PTX of the first, which drivers compile for all others.
find_program(DREY_NVCC nvcc)
set(DREY_CUDA_ARCHITECTURES "75;80;90" CACHE STRING "Architectures of libdrey-cuda, as nvcc numbers them")
if(DREY_NVCC)
  set(cuda_library ${CMAKE_BINARY_DIR}/libdrey-cuda.so.${PROJECT_VERSION})
  list(GET DREY_CUDA_ARCHITECTURES 0 oldest)
  set(cuda_code -gencode arch=compute_${oldest},code=compute_${oldest})
  foreach(architecture ${DREY_CUDA_ARCHITECTURES})
    list(APPEND cuda_code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  add_custom_command(OUTPUT ${cuda_library}
    COMMAND ${DREY_NVCC} -std=c++17 -O3 ${cuda_code} -fmad=false -ftz=false -prec-div=true -cudart static
      -Xcompiler -fPIC -shared -I ${CMAKE_SOURCE_DIR} -I ${CMAKE_SOURCE_DIR}/src -I ${CMAKE_SOURCE_DIR}/include
      -o ${cuda_library} ${CMAKE_SOURCE_DIR}/src/unit/cuda/cuda_library.cu
    DEPENDS src/unit/cuda/cuda_library.cu src/unit/opencl/lanes.cl src/unit/opencl/dot.cl src/unit/opencl/attend.cl src/unit/opencl/opencl_api.h VERBATIM)
  add_custom_target(drey_cuda ALL DEPENDS ${cuda_library})
  install(FILES ${cuda_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
