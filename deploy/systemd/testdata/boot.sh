#!/usr/bin/env bash
# A machine with a real systemd, in namespaces and for a test only. It runs in
# new mount, pid, network, UTS, IPC and cgroup namespaces, as their first
# process, and ends as systemd. The machine's root is this one's with a tmpfs on
# top: what it changes vanishes with it. Of systemd's units it has none but
# those under $1/files, which are copied over the root; $1/setup runs there
# before systemd starts. Everything that systemd logs comes on standard output.
set -euo pipefail
dir=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$dir/machine"
mkdir "$dir"/machine/{changes,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/machine/changes,workdir=$dir/machine/work" "$dir/machine/root"
cd "$dir/machine/root"

mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for d in run tmp usr/lib/systemd/system usr/lib/systemd/system-generators etc/systemd/system; do
  mkdir -p "$d"
  mount -t tmpfs tmpfs "$d"
done
chmod 1777 tmp
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty; do
  touch "dev/$d"
  mount --bind "/dev/$d" "dev/$d"
done
mkdir dev/{shm,pts,mqueue,hugepages}
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mkfifo dev/kmsg # the log
cat <>dev/kmsg &
ip link set lo up

cp -r "$dir/files/." .
setup=$(cat "$dir/setup" 2>/dev/null || true)
mkdir .old
pivot_root . .old
cd /
umount -l .old
rmdir .old
unset TMPDIR
bash -ec "$setup"
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/lib/systemd/systemd \
  --system --unit=multi-user.target --log-target=kmsg --show-status=no </dev/null
