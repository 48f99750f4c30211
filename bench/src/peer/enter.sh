# The way onto the simulated node: mounts of this process's own (`unshare --mount`) put the node's
# files where programs look for them. Once all stand it says so, waits for a line and becomes the
# program, so that none of this is measured.
#
#   enter.sh NODE WORK -- PROGRAM ARGS...
#
# NODE has the driver library and `root`, the node's /sys, /proc and /dev. WORK has `plugins` and
# `pods`, for the kubelet's two folders, and `run`, for /run; `out` and `err` in it take what the
# program writes.
set -eu
node=$1 work=$2
shift 3
root=$node/root

# bind SOURCE PLACE: a file or folder over another, which is made if it is missing.
bind() {
    if [ -d "$1" ]; then
        mkdir -p "$2"
    elif [ ! -e "$2" ]; then
        : >"$2"
    fi
    mount --rbind "$1" "$2"
}

# /dev: what every program needs, and the node's.
mkdir -p "$work/dev"
mount -t tmpfs none "$work/dev"
for file in /dev/{null,zero,full,random,urandom} "$root"/dev/*; do
    bind "$file" "$work/dev/${file##*/}"
done
bind "$work/dev" /dev

# /sys and /proc: the node's.
bind "$root/sys" /sys
for file in driver devices; do
    [ ! -e "$root/proc/$file" ] || bind "$root/proc/$file" "/proc/$file"
done

# /var/lib: where there is no kubelet's folder yet, the others stay as they are beside a new one.
if [ ! -d /var/lib/kubelet ]; then
    bind /var/lib "$work/lib"
    mount -t tmpfs none /var/lib
    for folder in "$work"/lib/*/; do
        folder=${folder%/}
        bind "$folder" "/var/lib/${folder##*/}"
    done
    mkdir /var/lib/kubelet
fi
mount -t tmpfs none /var/lib/kubelet
bind "$work/plugins" /var/lib/kubelet/device-plugins
bind "$work/pods" /var/lib/kubelet/pod-resources
bind "$work/run" /run

# Where a program may name the kubelet's socket without a folder.
cd /var/lib/kubelet/device-plugins
echo ready
read -r _
export LD_LIBRARY_PATH=$node
exec "$@" </dev/null >>"$work/out" 2>>"$work/err"
