# row: 1 6 8 14 17 18 37 43
# about: the tools a person would reach for first
# control: unshared
# args: host
say() { if [ "$2" = 0 ]; then echo "PROBE $1: reached"; else echo "PROBE $1: blocked"; fi; }
env | grep -q canary-; say env $?
cat /proc/*/environ 2>/dev/null | grep -aq canary-; say environ $?
head -c1 /etc/shadow >/dev/null 2>&1; say shadow $?
cat "$1" >/dev/null 2>&1; say host_file $?
[ -w /proc/sys/vm/stat_interval ] && [ -e /proc/sys/vm/stat_interval ]; say proc_sys $?
mknod node b 254 0 2>/dev/null; say mknod $?; rm -f node
unshare -m true 2>/dev/null; say unshare_mount $?
unshare -n true 2>/dev/null; say unshare_net $?
unshare -p -f true 2>/dev/null; say unshare_pid $?
unshare -U true 2>/dev/null; say unshare_user $?
mkdir -p m; mount -t tmpfs none m 2>/dev/null; say mount $?
umount m 2>/dev/null
setarch -R true 2>/dev/null; say setarch $?
chrt -f 1 true 2>/dev/null; say chrt $?
nice -n -5 true 2>&1 | grep -q . ; [ $? = 1 ]; say nice $?
