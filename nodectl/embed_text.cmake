# cmake -DTEXT=FILE -DNAME=WORD -DOUT=FILE.c -P embed_text.cmake: a text file as a C array of lines,
# so that what the command prints and the file in the repository cannot differ.
file(STRINGS ${TEXT} lines)
set(code "/* Made from ${NAME}.txt. */\n#include \"nodectl/explain.h\"\n\nconst char *const ${NAME}_page[] = {\n")
foreach(line IN LISTS lines)
  string(REPLACE "\\" "\\\\" line "${line}")
  string(REPLACE "\"" "\\\"" line "${line}")
  string(APPEND code "    \"${line}\",\n")
endforeach()
string(APPEND code "    NULL};\n")
file(WRITE ${OUT} "${code}")
