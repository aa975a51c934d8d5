#!/usr/bin/env bash
# Shows progress: sourced by the scripts that install, build and fetch.
#   COMMAND 2>&1 | moving LOG SAY
# copies what the command writes to LOG and shows one line of it on standard error: rewritten on a
# terminal, elsewhere a line every ten seconds. The function SAY is called with each line that was
# read, and with nothing each second; it puts what is to be seen into the variable `text`, and has
# moving_began, the second in which it all began. The command is in the foreground: Ctrl-C ends it,
# and with `set -o pipefail` its exit status counts.

# Prints a number of seconds as people say it: "about 40 s", "about 3 minutes".
about() {
    if [ "$1" -lt 5 ]; then
        echo "a few seconds"
    elif [ "$1" -lt 100 ]; then
        echo "about $((($1 + 9) / 10 * 10)) s"
    else
        echo "about $((($1 + 30) / 60)) minutes"
    fi
}

# Shows the line as it is now.
moving_said=$SECONDS moving_began=$SECONDS
moving_show() {
    if [ -t 2 ]; then
        # One line, whatever the width: a line that wraps cannot be rewritten.
        local width
        width=$(stty size 2>/dev/null <&2) || width=''
        width=${width#* }
        [ "${width:-0}" -gt 0 ] || width=80
        printf '\r\033[K%s' "${1:0:width-1}" >&2
    elif [ $((SECONDS - moving_said)) -ge 10 ]; then
        moving_said=$SECONDS
        printf '%s\n' "$1" >&2
    fi
}

moving() {
    local log=$1 say=$2 part='' line code text=''
    : >"$log"
    # shellcheck disable=SC2034 # for SAY
    moving_said=$SECONDS moving_began=$SECONDS
    while :; do
        code=0
        IFS= read -r -t 1 line || code=$?
        part+=$line
        if [ $code -gt 128 ]; then # a second has passed; the line is not whole yet
            "$say" ''
        else
            [ $code != 0 ] && [ -z "$part" ] && break
            printf '%s\n' "$part" >>"$log"
            "$say" "$part"
            part=''
        fi
        [ -z "$text" ] || moving_show "$text"
    done
    [ ! -t 2 ] || [ -z "$text" ] || printf '\r\033[K' >&2
}
