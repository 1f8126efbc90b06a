// Package guest holds tests that run as root in a guest of `make prove PROOF=kernels` and
// nowhere else: they load and remove modules, remount /proc and limit cgroups.
// What they find out about the kernel they report for docs/results/kernels.md.
package guest
