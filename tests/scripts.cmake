# Tests that are scripts, of shell or Python: they look at the source tree, at the built libraries, or
# install.
# Its label is its folder; those of this folder look at the form of the tree and have the label form.
# A script exits 77 when it cannot run here, and says why in a line "skipped: ...".
function(drey_script_test script)
  get_filename_component(name ${script} NAME)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/${script}.sh)
  if(NOT EXISTS ${file})
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/${script}.py)
  endif()
  add_test(NAME ${name} COMMAND ${file} ${ARGN}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(folder form)
  if(script MATCHES "^text/")
    set(folder same-text)
  elseif(script MATCHES "^([a-z]+)/")
    set(folder ${CMAKE_MATCH_1})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${folder} SKIP_RETURN_CODE 77)
endfunction()
# Those that run the command on toys. The engine's threads are tested in its own tests; these commands have more of them.
set(COMMANDS_WITH_THREADS cli cli_chat cli_interrupts cli_units serve same_answers)
function(drey_command_test script)
  get_filename_component(name ${script} NAME)
  drey_script_test(${script} $<TARGET_FILE:drey> $<TARGET_FILE:make_toy> ${ARGN})
  if(name IN_LIST COMMANDS_WITH_THREADS)
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
  endif()
endfunction()
# Those that look at sources and libraries; a sanitizer's build shows them nothing new.
function(drey_form_test script)
  if(NOT DREY_SANITIZE)
    drey_script_test(${script} ${ARGN})
    set_property(TEST ${script} APPEND PROPERTY LABELS fast)
  endif()
endfunction()

drey_form_test(layers $<TARGET_FILE:drey_internal>)
drey_form_test(style)
if(NOT DREY_SANITIZE)
  drey_script_test(models/models_page)
  set_property(TEST models_page APPEND PROPERTY LABELS fast)
endif()
if(CMAKE_GENERATOR STREQUAL "Ninja") # whose graph it reads, as ./test.sh --changed does
  drey_form_test(build_graph_check ${CMAKE_BINARY_DIR})
endif()
drey_form_test(headers ${CMAKE_C_COMPILER})
if(TEST headers)
  set_property(TEST headers APPEND PROPERTY LABELS compiler)
endif()
drey_form_test(service_units $<TARGET_FILE:drey>)

# Scripts that run the command or an installed program do it on a toy.
add_executable(make_toy support/programs/make_toy.c)
target_link_libraries(make_toy PRIVATE drey_test_support)
add_executable(refuse support/programs/refuse.c)
target_link_libraries(refuse PRIVATE drey_test_support)
add_executable(print_choice support/programs/print_choice.c)
target_link_libraries(print_choice PRIVATE drey_shared drey_options)
# The library's way to answer, as programs of others use it.
add_executable(chat_example ${CMAKE_SOURCE_DIR}/examples/chat.c)
target_link_libraries(chat_example PRIVATE drey_shared drey_options)
drey_form_test(exports $<TARGET_FILE:drey_shared> $<TARGET_FILE:drey_static>
  $<TARGET_FILE:drey_train_shared> $<TARGET_FILE:drey_train_static>)
drey_script_test(cli/completion $<TARGET_FILE:drey>)
set_property(TEST completion APPEND PROPERTY LABELS fast)
# It brings its own compiler, so once is enough for all builds of a machine.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT DREY_SANITIZE)
  drey_script_test(kernel/arm_kernels ${CMAKE_BINARY_DIR}/arm-kernels)
endif()
# A sanitizer takes memory of its own, and a foreign program cannot be linked plainly to it.
if(NOT DREY_SANITIZE)
  drey_script_test(install ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER} $<TARGET_FILE:make_toy>)
  drey_script_test(package ${CMAKE_BINARY_DIR} $<TARGET_FILE:drey> $<TARGET_FILE:make_toy>)
  drey_script_test(python/wheel ${CMAKE_BINARY_DIR} $<TARGET_FILE:drey> $<TARGET_FILE:make_toy>)
  drey_script_test(text/same_text_models $<TARGET_FILE:drey>)
  drey_script_test(text/budget $<TARGET_FILE:drey>)
  # What it counts of the small model's pages, others must not have read.
  set_tests_properties(budget same_text_models PROPERTIES RESOURCE_LOCK small_model)
endif()
