# Makes one file of the page's sources and puts it into C:
#   cmake -DFOLDER=serve/page -DOUT=page_html.c -P embed_page.cmake
# The one file is kept as page.html next to OUT.
cmake_minimum_required(VERSION 3.25)
# A policy names the page's script and style by the SHA-256 of what is between their tags.

# hex digits -> base64: three digits are two characters. 64 digits leave one, whose bits come first in its character.
function(base64 hex out)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  foreach(at RANGE 0 60 3)
    string(SUBSTRING ${hex} ${at} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING ${alphabet} ${high} 1 first)
    string(SUBSTRING ${alphabet} ${low} 1 second)
    string(APPEND text ${first}${second})
  endforeach()
  string(SUBSTRING ${hex} 63 1 digit)
  math(EXPR last "0x${digit} << 2")
  string(SUBSTRING ${alphabet} ${last} 1 first)
  set(${out} "${text}${first}=" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/index.html text)
file(READ ${FOLDER}/style.css style)
set(scripts "\n\"use strict\";\n")
foreach(name document icons code tex links blocks markdown store answers streams queued likely machine facts files view reader)
  file(READ ${FOLDER}/${name}.js script)
  string(APPEND scripts "\n${script}")
endforeach()
string(REPLACE "@style.css@" "\n${style}" text "${text}")
string(REPLACE "@scripts@" "${scripts}" text "${text}")
get_filename_component(page ${OUT} DIRECTORY)
file(WRITE ${page}/page.html "${text}")

function(hash_inside tag out)
  string(FIND "${text}" "<${tag}>" begin)
  string(FIND "${text}" "</${tag}>" end)
  string(LENGTH "<${tag}>" n_open)
  math(EXPR begin "${begin} + ${n_open}")
  math(EXPR n "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${n} inside)
  string(SHA256 hash "${inside}")
  base64(${hash} hash)
  set(${out} "'sha256-${hash}'" PARENT_SCOPE)
endfunction()
hash_inside(style style)
hash_inside(script script)
string(JOIN "; " policy "default-src 'none'" "script-src ${script}" "style-src ${style}"
  "connect-src 'self'" "img-src data:" "manifest-src data:" "base-uri 'none'" "form-action 'none'" "frame-ancestors 'none'"
  "require-trusted-types-for 'script'" "trusted-types 'none'")

file(READ ${page}/page.html bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REPEAT "....." 16 row)
string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include \"serve/page/page.h\"

const unsigned char page_html[] = {
${bytes}
};
const size_t n_page_html_bytes = sizeof page_html;
const char page_policy[] = \"${policy}\";
")
