#!/usr/bin/env bash
# Installs into an empty folder and uninstalls. Installs once more, builds the example with what is
# there (pkg-config and find_package, shared and static), moves the folder, and runs the results on
# a toy model.
#   install.sh BUILD_DIR COMPILER MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source_dir=$PWD
usage="usage: install.sh BUILD_DIR COMPILER MAKE_TOY"
build=${1:?$usage} cc=${2:?$usage} make_toy=${3:?$usage}

tmp=$(mktemp -d)
# The folder's list of what its owner has installed stays, for an uninstall.
manifest=$build/install_manifest.txt
[ ! -e "$manifest" ] || mv "$manifest" "$manifest.kept"
trap 'rm -rf "$tmp" "$manifest"; [ ! -e "$manifest.kept" ] || mv "$manifest.kept" "$manifest"' EXIT
if ! {
    cmake --install "$build" --prefix "$tmp/gone" && touch "$tmp/gone/include/another.h" &&
        cmake "-DMANIFEST=$manifest" -P cmake/uninstall.cmake
} >"$tmp/log" 2>&1 || [ "$(cd "$tmp/gone" && find . -type f -o -name drey)" != ./include/another.h ]; then
    cat "$tmp/log"
    echo "install: an uninstall leaves: $(find "$tmp/gone" -type f -o -name drey)"
    exit 1
fi
cmake --install "$build" --prefix "$tmp/first" >"$tmp/log" || {
    cat "$tmp/log"
    exit 1
}
mv "$tmp/first" "$tmp/prefix" # nothing installed may remember where it was put
prefix=$tmp/prefix
for file in bin/drey include/drey/{drey,chat,tune,train}.h include/drey/drey_{model,engine,session}.h share/doc/drey/LICENSE \
    share/man/man1/drey.1 share/bash-completion/completions/drey share/zsh/site-functions/_drey share/fish/vendor_completions.d/drey.fish; do
    [ -f "$prefix/$file" ] || {
        echo "install: $file is missing"
        exit 1
    }
done
library=$(find "$prefix" -name libdrey.so)
lib=$(dirname "$library")
export LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig
version=$(pkg-config --modversion drey)
read -r _ said _ < <("$prefix/bin/drey" --version) # the commit may follow
[ "$said" = "$version" ] || {
    echo "install: the command and drey.pc name different versions"
    exit 1
}
grep -q "releases/download/v$version\b" docs/guide/install.md || {
    echo "install: docs/guide/install.md downloads another version than $version"
    exit 1
}
dynamic=$(readelf -d "$library")
case $version in 0.*) soversion=${version%.*} ;; *) soversion=${version%%.*} ;; esac
[[ $dynamic =~ SONAME.*"libdrey.so.$soversion]" ]] || {
    echo "install: the shared library's soname is not libdrey.so.$soversion"
    exit 1
}

# 1. pkg-config. Warnings are errors: the header has to be clean in C and in C++.
read -ra flags < <(pkg-config --cflags --libs drey)
read -ra static_flags < <(pkg-config --cflags --libs --static drey)
"$cc" -std=c11 -Wall -Wextra -Werror examples/simple.c -o "$tmp/pc-shared" "${flags[@]}"
"$cc" -std=c11 -Wall -Wextra -Werror examples/chat.c -o "$tmp/chat" "${flags[@]}"
static_flags=("${static_flags[@]/#-ldrey/$lib/libdrey.a}")
"$cc" -std=c11 -Wall -Wextra -Werror examples/simple.c -o "$tmp/pc-static" "${static_flags[@]}"
# A program may give its functions the names that drey has inside: neither calls the other's.
cat >"$tmp/own.c" <<'C'
#include <drey/drey.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN(name)                                                                                  \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        abort();                                                                                   \
    }
OWN(file_open)
OWN(file_read)
OWN(median)
OWN(forward)
OWN(pool_open)
OWN(error_set)
OWN(gguf_open)
OWN(kernel_select)

int main(int n, char **arguments)
{
    drey_model *model;
    drey_error err;
    if (n != 2 || drey_model_open(&model, arguments[1], &err) != DREY_OK)
        return 1;
    drey_model_close(&model);
    puts("opened");
    return 0;
}
C
"$cc" -std=c11 -Wall -Wextra -Werror "$tmp/own.c" -o "$tmp/own" "${static_flags[@]}"
# The trainers come with libdrey-train, and with it alone.
printf '#include <drey/train.h>\nint main(void) { drey_train_exit_options t; drey_train_exit_options_init(&t); return 0; }\n' >"$tmp/train.c"
read -ra train_flags < <(pkg-config --cflags --libs drey-train)
"$cc" -std=c11 -Wall -Wextra -Werror "$tmp/train.c" -o "$tmp/train" "${train_flags[@]}"
"$tmp/train"
if "$cc" -std=c11 "$tmp/train.c" -o "$tmp/train" "${flags[@]}" 2>/dev/null; then
    echo "install: libdrey has a trainer in it"
    exit 1
fi
if echo | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
    printf '#include <drey/%s.h>\n' chat train tune |
        "$cc" -x c++ -fsyntax-only -Wall -Wextra -Werror "${flags[0]}" -
else
    echo "not run: the headers as C++, $cc has no C++ compiler next to it"
fi

# 2. find_package.
mkdir "$tmp/user"
cat >"$tmp/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(drey REQUIRED)
add_executable(cmake-shared ${SIMPLE})
target_link_libraries(cmake-shared PRIVATE drey::drey)
add_executable(cmake-static ${SIMPLE})
target_link_libraries(cmake-static PRIVATE drey::static)
CMAKE
if ! {
    cmake -S "$tmp/user" -B "$tmp/user/build" -G Ninja "-DCMAKE_C_COMPILER=$cc" \
        "-DCMAKE_PREFIX_PATH=$prefix" "-DSIMPLE=$source_dir/examples/simple.c" &&
        cmake --build "$tmp/user/build"
} >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    exit 1
fi

# 3. All four are the same program and write the same; the static ones need no libdrey.so.
"$make_toy" "$tmp/toy.gguf"
[ -n "$("$tmp/chat" "$tmp/toy.gguf" 8 "Be brief." hello)" ] || {
    echo "install: examples/chat.c answers nothing"
    exit 1
}
[ "$("$tmp/own" "$tmp/toy.gguf")" = opened ] || {
    echo "install: a program with a file_open of its own does not run"
    exit 1
}
programs=("$tmp/pc-shared" "$tmp/pc-static" "$tmp/user/build/cmake-shared"
    "$tmp/user/build/cmake-static")
for program in "${programs[@]}"; do
    linked=no
    [[ $(ldd "$program") != *libdrey* ]] || linked=yes
    case $program in *shared) expected=yes ;; *) expected=no ;; esac
    [ $linked = $expected ] || {
        echo "install: $program: linked to libdrey.so: $linked, expected: $expected"
        exit 1
    }
    "$program" "$tmp/toy.gguf" "Once upon a time" >"$program.text" || {
        echo "install: $program failed"
        exit 1
    }
    if ! cmp "$program.text" "${programs[0]}.text" || [ ! -s "$program.text" ]; then
        echo "install: $program wrote another text"
        exit 1
    fi
done
