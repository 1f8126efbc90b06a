#!/bin/bash
# pods.sh FOLDER: what runs in the pods, where no registry is: a Debian with a
# JRE, the same that deploy/docker makes and keeps, and a Tomcat. Needs root.
set -euo pipefail
out=$1
version=10.1.59
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tcpdiag
base=$cache/bookworm-openjdk-17-jre.tar
mkdir -p "$cache"

if [ ! -e "$base" ]; then
	echo "making a Debian with a JRE (once)"
	work=$(mktemp -d "$cache/debootstrap-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	debootstrap --variant=minbase --include=openjdk-17-jre-headless bookworm "$work/root" >"$work/log" || { cat "$work/log"; exit 1; }
	tar -C "$work/root" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
		--exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' -cf "$work/base.tar" .
	mv "$work/base.tar" "$base"
fi
ln -sfn "$base" "$out/jre.tar"

if [ ! -d "$out/tomcat" ]; then
	archive=$HOME/.m2/repository/org/apache/tomcat/tomcat/$version/tomcat-$version.tar.gz
	[ -e "$archive" ] || mvn -q dependency:get -Dartifact="org.apache.tomcat:tomcat:$version:tar.gz" -Dtransitive=false
	rm -rf "$out/tomcat.new" && mkdir "$out/tomcat.new"
	tar -xzf "$archive" --strip-components=1 -C "$out/tomcat.new"
	mv "$out/tomcat.new" "$out/tomcat"
fi
