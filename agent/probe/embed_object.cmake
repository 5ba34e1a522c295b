# cmake -DOBJECT=FILE.o -DNAME=WORD -DOUT=FILE.c -P embed_object.cmake: a file as an array of bytes.
file(READ ${OBJECT} bytes HEX)
string(LENGTH "${bytes}" n_digits)
math(EXPR n_bytes "${n_digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made from ${NAME}. */\n#include <stddef.h>\n\n"
  "extern const unsigned char ${NAME}_object[];\nextern const size_t ${NAME}_object_bytes;\n"
  "_Alignas(16) const unsigned char ${NAME}_object[] = {\n${bytes}\n};\n"
  "const size_t ${NAME}_object_bytes = ${n_bytes};\n")
