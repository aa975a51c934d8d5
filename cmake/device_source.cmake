# The text of device kernels as an array in C, NAME_source: lanes.cl, then NAME.cl.
# cmake -DNAME=dot -DFOLDER=src/unit -DTO=dot_source.c -P this.
file(READ ${FOLDER}/lanes.cl lanes HEX)
file(READ ${FOLDER}/${NAME}.cl kernels HEX)
set(hex "${lanes}${kernels}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${hex}")
string(REGEX REPLACE "(................................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include \"unit/opencl/device_source.h\"\nconst char ${NAME}_source[] = {\n${bytes}0};\nconst size_t ${NAME}_source_bytes = sizeof ${NAME}_source - 1;\n")
