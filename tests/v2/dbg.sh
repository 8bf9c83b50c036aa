show() { python3 -c "
import json,sys
r=json.load(sys.stdin)
print(r.get('status'), r.get('error') and r['error'].get('message'), r.get('stdout','')[:200], r.get('limits_hit'), r.get('metrics'), 'missing', r.get('isolation',{}).get('missing'))" || true; find /sys/fs/cgroup -path '*cupel*' -type d; }
C="build/cupel run --json"
mkdir -p /tmp/rt; chown 12345:12345 /tmp/rt
echo "== root"; time timeout 20 $C 'print(1)' | show
timeout 30 $C --memory 128M 'x = bytearray(b"x") * (400 << 20)' | show
timeout 30 $C --pids 32 'import os
while True:
  if os.fork()==0: os._exit(0)' | show
timeout 30 $C -t 2 'while True: pass' | show
echo "== user, alone in its group"
mkdir -p /sys/fs/cgroup/u1; chown 12345:12345 /sys/fs/cgroup/u1 /sys/fs/cgroup/u1/cgroup.{procs,threads,subtree_control}
alone() { ( echo $BASHPID > /sys/fs/cgroup/u1/cgroup.procs; exec setpriv --reuid 12345 --regid 12345 --clear-groups env -i HOME=/tmp/rt XDG_RUNTIME_DIR=/tmp/rt PATH=/usr/bin timeout --foreground 20 $C "$@" ) | show; sleep 1; find /sys/fs/cgroup/u1 -type d;  cat /sys/fs/cgroup/u1/cgroup.procs /sys/fs/cgroup/u1/cgroup.subtree_control; }
one() { ( echo $BASHPID > /sys/fs/cgroup/u1/cgroup.procs; exec setpriv --reuid 12345 --regid 12345 --clear-groups env -i HOME=/tmp/rt XDG_RUNTIME_DIR=/tmp/rt PATH=/usr/bin $C "$@" ) | show; sleep 1; find /sys/fs/cgroup/u1 -type d;  cat /sys/fs/cgroup/u1/cgroup.procs /sys/fs/cgroup/u1/cgroup.subtree_control; }
echo "-- with timeout beside it"; alone 'print(1)'
echo "-- really alone"; one 'print(1)'; one 'print(2)'
one --memory 128M 'x = bytearray(b"x") * (400 << 20)'
echo "== user in a leaf"
mkdir -p /sys/fs/cgroup/u2/shell; for d in /sys/fs/cgroup/u2 /sys/fs/cgroup/u2/shell; do chown 12345:12345 $d $d/cgroup.{procs,threads,subtree_control}; done
leaf() { ( echo $BASHPID > /sys/fs/cgroup/u2/shell/cgroup.procs; setpriv --reuid 12345 --regid 12345 --clear-groups env -i HOME=/tmp/rt XDG_RUNTIME_DIR=/tmp/rt PATH=/usr/bin timeout 20 $C "$@" ) | show; sleep 1; find /sys/fs/cgroup/u2 -type d;  cat /sys/fs/cgroup/u2/cgroup.procs /sys/fs/cgroup/u2/cgroup.subtree_control; }
leaf 'print(1)'; leaf 'print(2)'
leaf --memory 128M 'x = bytearray(b"x") * (400 << 20)'
leaf --pids 32 'import os
while True:
  if os.fork()==0: os._exit(0)'
