# What help, completions and the manual page say of commands and options, made of docs/options:
#   awk -f options.awk -v form=c commands.md GROUP.md...                the tables of option_texts.h
#   awk -f options.awk -v form=mdoc commands.md GROUP.md... drey.1.in   the manual page
# A section is a heading, one short line, a list, and paragraphs: see CONTRIBUTING.md, An option.
# POSIX awk, so that a build for another machine needs nothing of that machine.

function end_paragraph() {
    if (paragraph == "")
        return
    if (state == "line") {
        line[n] = paragraph
        state = "list"
    } else {
        text[n, ++n_texts[n]] = paragraph
    }
    paragraph = ""
}
function begin(what, words) { # a section: "group", "option" or "command"
    end_paragraph()
    kind[++n] = what
    head[n] = words
    group_of[n] = group
    state = what == "group" ? "text" : "line"
}

FILENAME ~ /\.in$/ { frame[++n_frame] = $0; next }
FNR == 1 { group = FILENAME; sub(/.*\//, "", group); sub(/\.md$/, "", group) }
/^# / { begin("group", substr($0, 3)); next }
/^## / { begin(group == "commands" ? "command" : "option", substr($0, 4)); next }
/^$/ { end_paragraph(); next }
state == "list" && /^- / { items[n, ++n_items[n]] = substr($0, 3); next }
state == "list" && /^  / && n_items[n] { sub(/^ +/, " "); items[n, n_items[n]] = items[n, n_items[n]] $0; next }
/^    / { end_paragraph(); paragraph = $0; next }
{ paragraph = paragraph == "" ? $0 : paragraph " " $0; if (state == "list") state = "text" }
END {
    end_paragraph()
    for (i = 1; i <= n; i++)
        take_apart(i)
    if (form == "c")
        write_c()
    else
        write_mdoc()
}

# "-m, --model FILE", "train exit -m MODEL.gguf": into name, letter and what follows; and the list.
function take_apart(s,    words, i, k, at, key, value) {
    words = head[s]
    if (kind[s] == "option") {
        letter[s] = words ~ /^-[a-z], / ? substr(words, 2, 1) : ""
        sub(/^-[a-z], /, "", words)
        sub(/^--/, "", words)
        at = index(words " ", " ")
    } else if (kind[s] == "command") {
        match(words " ", /^([a-z]+ )+/)
        at = RLENGTH
    } else {
        return
    }
    name[s] = substr(words, 1, at - 1)
    rest[s] = substr(words, at + 1)
    for (i = 1; i <= n_items[s]; i++) {
        k = index(items[s, i], ": ")
        key = substr(items[s, i], 1, k - 1)
        value = substr(items[s, i], k + 2)
        gsub(/^`|`$/, "", value)
        if (key == "of")
            of[s] = value
        else if (key == "first")
            first[s] = value
        else if (key == "in")
            place[s] = value
        else if (key == "example")
            examples[s] = examples[s] "  " value "\n"
        else {
            meant[s, ++n_meant[s]] = key
            meaning[s, n_meant[s]] = value
        }
    }
}

# ---- C ----

function quoted(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/"/, "\\\"", s)
    gsub(/\n/, "\\n", s)
    return "\"" s "\""
}
function bits(list,    words, i, n, out) { # "run, train exit" -> CLI_RUN | CLI_TRAIN_EXIT
    n = split(list, words, /, */)
    for (i = 1; i <= n; i++) {
        gsub(/ /, "_", words[i])
        out = out (i > 1 ? " | " : "") "CLI_" toupper(words[i])
    }
    return n ? out : "0"
}
function paragraphs(s, from,    i, out) {
    for (i = from; i <= n_texts[s]; i++)
        out = out (i > from ? "\n\n" : "") text[s, i]
    return out
}
function is_family(s,    i) { # "train", of which there are several
    for (i = 1; i <= n; i++)
        if (kind[i] == "command" && index(name[i], name[s] " ") == 1)
            return 1
    return 0
}
function write_c(    s, k) {
    print "/* Made of docs/options by cmake/options.awk. */"
    print "#include \"cli/args/option_texts.h\"\n"
    for (s = 1; s <= n; s++)
        if (kind[s] == "option" && n_meant[s]) {
            printf "static const option_meaning meanings_%d[] = {\n", s
            for (k = 1; k <= n_meant[s]; k++)
                printf "    {%s, %s},\n", bits(meant[s, k]), quoted(meaning[s, k])
            print "    {0, 0}};"
        }
    print "\nconst option_group option_groups[] = {"
    for (s = 1; s <= n; s++)
        if (kind[s] == "group" && group_of[s] != "commands")
            printf "    {%s, %s, %s},\n", quoted(group_of[s]), quoted(head[s]), quoted(paragraphs(s, 1))
    print "};\nconst size_t n_option_groups = sizeof option_groups / sizeof *option_groups;\n"
    print "const option_text option_texts[] = {"
    for (s = 1; s <= n; s++)
        if (kind[s] == "option")
            printf "    {%s, %s, %s, %s, %s,\n     %s,\n     %s, %s,\n     %s},\n", quoted(name[s]), quoted(letter[s]),
                quoted(group_of[s]), quoted(rest[s]), quoted(line[s]), bits(of[s]), bits(first[s]),
                n_meant[s] ? "meanings_" s : "0", quoted(paragraphs(s, 1))
    print "};\nconst size_t n_option_texts = sizeof option_texts / sizeof *option_texts;\n"
    print "const cli_usage cli_usages[] = {"
    for (s = 1; s <= n; s++)
        if (kind[s] == "command")
            printf "    {%s, %s, %s, %s, %s,\n     %s,\n     %s,\n     %s},\n", is_family(s) ? "0" : bits(name[s]),
                quoted(name[s]), quoted(rest[s]), quoted(line[s]), quoted(place[s]), quoted(text[s, 1]),
                quoted(examples[s]), quoted(paragraphs(s, 2))
    print "};\nconst size_t cli_n_usages = sizeof cli_usages / sizeof *cli_usages;"
}

# ---- mdoc ----

function plain_roff(s) {
    gsub(/\\/, "\\e", s)
    return s
}
function inline_roff(s,    parts, k, i, out, code) { # `code` is bold, in which a hyphen is one of ASCII
    k = split(s, parts, /`/)
    for (i = 1; i <= k; i++) {
        code = plain_roff(parts[i])
        if (i % 2 == 0) {
            gsub(/-/, "\\-", code)
            code = "\\fB" code "\\fR"
        }
        out = out code
    }
    return out
}
function write_text(s,    at) { # a sentence begins a line
    if (s ~ /^    /) {
        sub(/^ +/, "", s)
        gsub(/-/, "\\-", s)
        print ".Dl " s
        return
    }
    s = inline_roff(s)
    while (match(s, /[.?!]["\)]? ["(A-Z0-9\\]/)) {
        at = RSTART + RLENGTH - 2
        print_line(substr(s, 1, at - 1))
        s = substr(s, at + 1)
    }
    print_line(s)
}
function print_line(s) {
    print (s ~ /^[.']/ ? "\\&" : "") s
}
function write_texts(s, from,    i) {
    for (i = from; i <= n_texts[s]; i++) {
        if (i > 1 && text[s, i] !~ /^    / && text[s, i - 1] !~ /^    /)
            print ".Pp"
        write_text(text[s, i])
    }
}
function sentence(s) { # of a short line
    return toupper(substr(s, 1, 1)) substr(s, 2) "."
}
function values_roff(s,    words, i, k, macro, out, last) { # "FILE|none" -> Ar FILE | Cm none
    sub(/^\[/, "", s)
    sub(/\]$/, "", s)
    k = split(s, words, /\|/)
    for (i = 1; i <= k; i++) {
        macro = words[i] ~ /^[a-z0-9]/ ? "Cm" : "Ar"
        gsub(/-/, "\\-", words[i])
        out = out (i > 1 ? " | " : "") (macro != last ? macro " " : "") words[i]
        last = macro
    }
    return out
}
function write_option(s,    k) {
    printf ".It %sFl \\-%s", letter[s] == "" ? "" : "Fl " letter[s] " , ", name[s]
    if (rest[s] != "")
        printf " %s%s", rest[s] ~ /^\[/ ? "Op " : "", values_roff(rest[s])
    printf "\n"
    write_text(sentence(line[s]))
    if (n_texts[s])
        print ".Pp"
    write_texts(s, 1)
    for (k = 1; k <= n_meant[s]; k++) {
        print ".Pp"
        write_text("`" meant[s, k] "`: " meaning[s, k] ".")
    }
    print ".Pp"
    print_line("For \\fI" of[s] "\\fR.")
}
function write_options(    s, open) {
    for (s = 1; s <= n; s++) {
        if (kind[s] == "group" && group_of[s] != "commands") {
            if (open)
                print ".El"
            print ".Ss " head[s]
            write_texts(s, 1)
            print ".Bl -tag -width Ds"
            open = 1
        }
        if (kind[s] == "option")
            write_option(s)
    }
    print ".El"
}
function write_commands(    s) {
    print ".Bl -tag -width Ds"
    for (s = 1; s <= n; s++)
        if (kind[s] == "command") {
            print ".It Cm " name[s]
            write_texts(s, 1)
        }
    print ".El"
}
function write_synopsis(    s, words, i, k) {
    for (s = 1; s <= n; s++) {
        if (kind[s] != "command" || is_family(s))
            continue
        printf ".Nm drey %s\n", name[s]
        k = split(rest[s], words, / /)
        if (k && words[1] ~ /^\[/) {
            print ".Op Fl m Ar " substr(words[2], 1, length(words[2]) - 1)
            k = 0
        }
        for (i = 1; i <= k; i++)
            print words[i] ~ /^-/ ? ".Fl " substr(words[i], 2) " Ar " words[++i] : "." values_roff(words[i])
        print ".Op Ar options"
    }
}
function write_mdoc(    i) {
    for (i = 1; i <= n_frame; i++) {
        if (frame[i] == ".\\\" synopsis")
            write_synopsis()
        else if (frame[i] == ".\\\" commands")
            write_commands()
        else if (frame[i] == ".\\\" options")
            write_options()
        else
            print frame[i]
    }
}
