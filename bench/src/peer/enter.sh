# The way onto the simulated node: mounts of this process's own (`unshare --mount`) put the node's
# files where programs look for them. Once all stand it says so, waits for a line and becomes the
# program, so that none of this is measured.
#
#   enter.sh NODE WORK -- PROGRAM ARGS...
#
# NODE has the driver library and `root`, the node's /sys, /proc and /dev. WORK has `plugins` and
# `pods`, for the kubelet's two folders, and `run`, for /run; `driver` in it becomes the driver's
# root, and `out` and `err` take what the program writes.
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

# numbers NAME: the major and minor number that the driver gives a node of this name.
numbers() {
    case $1 in
    nvidiactl) echo 195 255 ;;
    nvidia-modeset) echo 195 254 ;;
    nvidia-uvm) echo 511 0 ;;
    nvidia-uvm-tools) echo 511 1 ;;
    nvidia-cap[0-9]*) echo 235 "${1#nvidia-cap}" ;;
    nvidia[0-9]*) echo 195 "${1#nvidia}" ;;
    card[0-9]*) echo 226 "${1#card}" ;;
    renderD[0-9]*) echo 226 "${1#renderD}" ;;
    channel[0-9]*) echo 234 "${1#channel}" ;;
    *) echo 10 99 ;;
    esac
}

# node SOURCE PLACE: a device node for each file of the node's. Who may not make one gets another
# device in its place: programs look at the kind.
node() {
    local file
    if [ -L "$1" ]; then
        cp -P "$1" "$2"
    elif [ -d "$1" ]; then
        mkdir "$2"
        for file in "$1"/*; do
            node "$file" "$2/${file##*/}"
        done
    elif mknod -m 666 "$2" c $(numbers "${1##*/}") 2>/dev/null; then
        :
    else
        bind /dev/null "$2"
    fi
}

# /dev: what every program needs, and the node's.
mkdir -p "$work/dev"
mount -t tmpfs none "$work/dev"
for file in /dev/{null,zero,full,random,urandom}; do
    bind "$file" "$work/dev/${file##*/}"
done
for file in "$root"/dev/*; do
    node "$file" "$work/dev/${file##*/}"
done
bind "$work/dev" /dev

# The driver's files: all of the root but what the kernel makes.
mkdir -p "$work/driver"
for file in "$root"/*; do
    place=$work/driver/${file##*/}
    case ${file##*/} in
    dev | proc | sys) ;;
    *) if [ -L "$file" ]; then cp -P "$file" "$place"; else bind "$file" "$place"; fi ;;
    esac
done

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
