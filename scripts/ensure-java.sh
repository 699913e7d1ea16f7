#!/bin/sh
# Makes sure that there is a Java 17 or newer, which Spark needs: finds one, installs one, or says what to install.
# Looks in JAVA_HOME, on the PATH, and in the homes given as arguments (by default the usual ones), as
# src/harken/spark/runtime/java.py does.
set -eu

package=openjdk-17-jre-headless

# Whether a java can be run and is new enough.
is_new_enough() {
    [ -x "$1" ] || return 1
    said=$("$1" -version 2>&1) || return 1
    case $said in *' version "'*) ;; *) return 1 ;; esac
    version=${said#*' version "'}
    version=${version#1.} # before Java 9 the version was 1.8.0_392
    version=${version%%[!0-9]*}
    [ "${version:-0}" -ge 17 ]
}

java_is_there() {
    if is_new_enough "$(command -v java)"; then return 0; fi
    for home in "${JAVA_HOME:-/none}" "$@"; do
        if is_new_enough "$home/bin/java"; then return 0; fi
    done
    return 1
}

# Not every release of Debian and Ubuntu has Java 17; where it is missing, the default is newer.
# Package lists that cannot be renewed may still do.
install_java() {
    apt="$1 env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120"
    $apt update || true
    $apt install --yes --no-install-recommends "$package" ||
        $apt install --yes --no-install-recommends default-jre-headless
}

stop() {
    echo "Spark needs Java 17 or newer: install $package or any newer Java, or set JAVA_HOME ($1)" >&2
    exit 1
}

[ $# -gt 0 ] || set -- /usr/lib/jvm/* /opt/*jdk* ~/.sdkman/candidates/java/* \
    /Library/Java/JavaVirtualMachines/*/Contents/Home

if java_is_there "$@"; then exit 0; fi
command -v apt-get >/dev/null || stop "there is no apt-get to do it for you"
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    stop "it takes root to do it for you"
fi

echo "Installing $package, which Spark needs (once) ..."
log=$(install_java "$as_root" 2>&1) || stop "apt-get could not: $(echo "$log" | tail -n 1)"
java_is_there "$@" || stop "apt-get installed one that is too old"
