#!/bin/sh
# Runs cases.json through the real Spring Boot and rewrites expected-VERSION.json.
# usage: ./run.sh [VERSION…]      needs a JDK 17 or newer, and Maven
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for boot in "${@:-2.7.18 3.5.16 4.1.1}"; do
  for v in $boot; do
    mvn -q -B -Dboot.version="$v" -DbuildDirectory="$work" dependency:build-classpath -Dmdep.outputFile="$work/cp-$v"
    mkdir -p "$work/classes-$v"
    javac -nowarn -d "$work/classes-$v" -cp "$(cat "$work/cp-$v")" src/main/java/*.java
    java -cp "$work/classes-$v:$(cat "$work/cp-$v")" Cases cases.json "expected-$v.json"
  done
done
