#!/usr/bin/env bash
# What building for aarch64 on another machine takes: sourced by static.sh and deb.sh.
#   cross_begin NAME
# NAME is that of the script, which ends with exit status 77 and a line on standard error if
# something is missing. Sets `tools`, the prefix of the compiler's programs, and what pkg-config
# reads.
cross_begin() {
    local libraries=/usr/lib/aarch64-linux-gnu missing=() name
    tools=aarch64-linux-gnu-
    command -v ${tools}gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
    for name in edit:libedit pcre2-8:libpcre2 uring:liburing xxhash:libxxhash; do
        [ -e "$libraries/lib${name%:*}.a" ] || missing+=("${name#*:}-dev:arm64")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        echo "$1: aarch64 needs packages that are not here. On Debian, as root:" \
            "dpkg --add-architecture arm64 && apt-get update && apt-get install ${missing[*]}" >&2
        exit 77
    fi
    export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:/usr/share/pkgconfig
    unset CFLAGS LDFLAGS CC # they are for this machine
}
