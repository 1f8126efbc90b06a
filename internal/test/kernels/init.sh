#!/bin/busybox sh
# Process 1 of the guest: runs what the list $tcpdiag_suite (of the kernel's command line)
# says (name, minutes, a variable or -, arguments) and powers the machine off.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin HOME=/root TCPDIAG_GUEST=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
echo 1 >/proc/sys/kernel/printk
ulimit -n 65536
for module in virtio_pci virtio_blk; do modprobe $module; done
mount -t ext4 -o ro /dev/vda /programs
uptime() { cut -d' ' -f1 /proc/uptime; }
echo "@@boot $(uptime) $(uname -r) $(uname -m)"
suite=${tcpdiag_suite:-/suite}
# The guest's clock jumps wherever it waits for its disk: not in the tests.
cat /programs/tcpdiag >/dev/null
grep -qF 'run ^Test(JVM' "$suite" && find /programs/opt /programs/lib64 -type f -exec cat {} + >/dev/null
while read -r name minutes variable args; do
  echo "@@run $name"
  cat "/t/$name/test" >/dev/null
  [ "$variable" = - ] && variable=TCPDIAG_GUEST=1
  cd "/t/$name" && env "$variable" ./test -test.v -test.timeout "${minutes}m" $args </dev/null 2>&1
  echo "@@exit $? $(uptime)"
done <"$suite"
echo "@@end"
poweroff -f
