# The text of the device kernels as an array in C: cmake -DFROM=dot.cl -DTO=dot_source.c -P this.
file(READ ${FROM} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${hex}")
string(REGEX REPLACE "(................................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include \"unit/dot_source.h\"\nconst char dot_source[] = {\n${bytes}0};\nconst size_t dot_source_bytes = sizeof dot_source - 1;\n")
