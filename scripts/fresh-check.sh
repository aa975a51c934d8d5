#!/usr/bin/env bash
# Proves the two commands of the README on a machine that has nothing: makes a bare Debian 12 in a
# folder (debootstrap, chroot), clones the last commit into a path with blanks, runs ./demo.sh,
# ./test.sh and ./test.sh --optional there, prints a verdict, removes it all. Needs root,
# debootstrap, about 9 GB of disk and the network.
#   fresh-check.sh [--user] [--models DIR] [--dir DIR] [--keep] [demo] [test] [optional]
#     --user     runs them as an ordinary user with sudo
#     --models   a folder with the models: seen read-only inside, nothing is downloaded
#     --dir      where the chroot is made (default $TMPDIR, else /tmp)
#     --keep     keeps the chroot, for a look
#     demo test optional  only these
# It takes over how this machine reaches packages: apt's sources, keys and proxies, pip's settings,
# proxy variables, certificates.
set -euo pipefail
unset CDPATH

usage() {
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
user='' models='' parent=${TMPDIR:-/tmp} keep=false steps=()
original=("$@")
inside=''
while [ $# -gt 0 ]; do
    case $1 in
    --user) user=guest ;;
    --models) models=$(realpath "${2:?}") && shift ;;
    --dir) parent=$(realpath "${2:?}") && shift ;;
    --keep) keep=true ;;
    --inside) inside=${2:?} && shift ;; # the second half of this script, see below
    demo | test | optional) steps+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#steps[@]} -gt 0 ] || steps=(demo test optional)
repository=$(git -C "$(dirname "${BASH_SOURCE[0]}")/.." rev-parse --show-toplevel)

# ---- First half: make the folder, run the second half in a mount and process namespace of its own,
# so that whatever happens no mount and no process is left; then remove the folder.
if [ -z "$inside" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "fresh-check: needs root (chroot, mounts)" >&2
        exit 1
    fi
    for tool in debootstrap unshare; do
        command -v $tool >/dev/null || {
            echo "fresh-check: needs $tool (apt-get install debootstrap util-linux)" >&2
            exit 1
        }
    done
    work=$(mktemp -d "$parent/fresh-check.XXXXXX")
    status=0
    unshare --mount --pid --fork --kill-child --propagation private \
        "$repository/scripts/fresh-check.sh" --inside "$work" "${original[@]}" || status=$?
    if $keep; then
        echo "fresh-check: the chroot is in $work/root"
    else
        rm -rf --one-file-system "$work"
    fi
    exit $status
fi

# ---- Second half: nothing below is seen outside.
root=$inside/root
began=$SECONDS
note() { printf 'fresh-check: %s\n' "$*"; }

mirror=$("$repository/scripts/package/debian-mirror.sh")
note "debootstrap bookworm${mirror:+ from $mirror}"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" ${mirror:+"$mirror"} \
    >"$inside/debootstrap.log" 2>&1 || {
    tail -n 20 "$inside/debootstrap.log"
    exit 1
}
note "bare system: $((SECONDS - began)) s, $(du -sm "$root" | cut -f1) MB"

# copy PATH...: those that exist, to the same place inside
copy() {
    local path
    for path in "$@"; do
        [ -e "$path" ] || continue
        mkdir -p "$root$(dirname "$path")"
        cp -rLT --preserve=mode "$path" "$root$path"
    done
}
# show PATH: the host's folder, read-only, in the same place inside
show() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
}

# apt: sources (only those of this Debian release: others may need what is not here), keys, proxies.
if [ -n "$mirror" ]; then
    rm -f "$root/etc/apt/sources.list"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
        /etc/apt/sources.list.d/*.sources; do
        grep -qs bookworm "$list" || continue
        copy "$list"
        while read -r key; do copy "$key"; done < <(grep -oE '/[^] ]+\.(gpg|asc)' "$list")
    done
    copy /etc/apt/trusted.gpg.d /etc/apt/keyrings /etc/apt/auth.conf /etc/apt/auth.conf.d \
        /etc/apt/preferences.d
fi
apt-config dump 2>/dev/null | grep -E \
    '^Acquire::(https?|ftp|Check-Valid-Until|Check-Date|ForceIPv[46]|Retries|Languages)\b' \
    >"$root/etc/apt/apt.conf.d/90fresh-check" || true

# Names and certificates.
for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$root$file"; done
copy /usr/local/share/ca-certificates
chroot "$root" update-ca-certificates >/dev/null 2>&1

# pip: its files; its and the proxies' variables, with the files and folders that they name.
settings=()
while IFS= read -r line; do
    settings+=("$line")
    for word in ${line#*=}; do
        case $word in
        /*) if [ -d "$word" ]; then show "$word" "$word"; elif [ -f "$word" ]; then copy "$word"; fi ;;
        esac
    done
done < <(env | grep -iE \
    '^(PIP_[A-Z_]+|[a-z]+_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=' || true)
copy /etc/pip.conf
home=$root/root
if [ -n "$user" ]; then
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
    home=$root/home/$user
fi
for file in .pip/pip.conf .config/pip/pip.conf; do
    [ ! -f "$HOME/$file" ] || { mkdir -p "$home/${file%/*}" && cp "$HOME/$file" "$home/$file"; }
done

mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
if [ -n "$models" ]; then
    show "$models" /models
    settings+=(DREY_MODELS=/models)
fi

place="$home/a fresh drey"
git clone -q --no-hardlinks --no-local "$repository" "$place"
if [ -n "$user" ]; then
    # A person's own machine has sudo; a bare chroot has to be given it.
    chroot "$root" env "${settings[@]}" DEBIAN_FRONTEND=noninteractive \
        sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends sudo' \
        >"$inside/sudo.log" 2>&1 || {
        tail "$inside/sudo.log"
        exit 1
    }
    printf '%s\n' "$user ALL=(ALL) NOPASSWD:ALL" >"$root/etc/sudoers.d/$user"
    printf '%s\n' "Defaults env_keep += \"http_proxy https_proxy no_proxy\"" \
        >>"$root/etc/sudoers.d/$user"
    chroot "$root" chown -R "$user:" "/home/$user"
fi

failed=()
for step in "${steps[@]}"; do
    began=$SECONDS
    command=("$step.sh")
    [ "$step" != optional ] || command=(test.sh --optional)
    note "./${command[*]}"
    # A bare environment: nothing of the host's but the settings above. Run from elsewhere.
    if chroot ${user:+--userspec="$user:$user"} "$root" env -i HOME="${home#"$root"}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        "${settings[@]}" "${place#"$root"}/${command[0]}" "${command[@]:1}" </dev/null; then
        note "./${command[*]}: ok, $((SECONDS - began)) s"
    else
        note "./${command[*]}: FAILED with exit status $?, $((SECONDS - began)) s"
        failed+=("$step")
    fi
    # What one step has compiled, the next one takes.
    grep -o 'Building C object .*' "$place/build/build.log" | sort >"$inside/$step.compiled" || true
    twice=$(sort "$inside"/*.compiled | uniq -d | wc -l)
    note "compiled: $(wc -l <"$inside/$step.compiled") files, twice so far: $twice"
    [ "$twice" = 0 ] || failed+=("$step (compiled twice)")
done
note "disk used: $(du -smx --exclude="$root/models" "$root" | cut -f1) MB"
if [ ${#failed[@]} -gt 0 ]; then
    note "verdict: NOT good on a bare Debian 12: ${failed[*]}"
    exit 1
fi
note "verdict: good on a bare Debian 12: ${steps[*]}, commit $(git -C "$repository" rev-parse --short HEAD)"
