#!/bin/sh
# Runs cases.json through the real Spring Boot and rewrites expected-VERSION.json.
# usage: ./run.sh [VERSION…]      needs a JDK 17 or newer, and Maven
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- 2.3.12.RELEASE 2.7.18 3.5.16 4.1.1
for boot; do
  mvn -q -B -Dboot.version="$boot" dependency:build-classpath -Dmdep.outputFile="$work/cp-$boot"
  case $boot in
    2.*) release=11 ;; # Spring Framework 5.2 reads class files up to Java 14
    *) release=17 ;;
  esac
  mkdir "$work/classes-$boot"
  javac -nowarn --release $release -d "$work/classes-$boot" -cp "$(cat "$work/cp-$boot")" src/main/java/*.java
  java -cp "$work/classes-$boot:$(cat "$work/cp-$boot")" Cases cases.json "expected-$boot.json"
done
