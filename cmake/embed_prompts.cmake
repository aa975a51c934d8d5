# The text of a file as an array in C: cmake -DNAME=tuning_prompts -DFROM=FILE -DTO=FILE.c -P this.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REPEAT "....." 16 row)
string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include \"cli/files/prompts.h\"\nconst char ${NAME}[] = {\n${bytes}0};\n")
