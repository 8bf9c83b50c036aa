"""Hosts that are laid out in other ways than Debian 12, each with a root of its own. Whole root file systems of
other releases are run by `make test-distros` (tests/distros.py)."""
import json
import os
import subprocess

import pytest

import host

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root has a root of its own")
SMOKE = """
import ctypes, json, os, subprocess, sys
print(json.dumps({"python": sys.version_info[:2], "lib": os.path.realpath("/lib"),
                  "bash": subprocess.run(["/bin/bash", "-c", "echo 42"], capture_output=True,
                                         text=True).stdout,
                  "read_only": not os.access("/lib", os.W_OK)}))
"""


def in_root(place, prepare, command, user=None, lower="/", plain=False):
    """Run a shell command in an overlay of a root that is changed first; nothing is left.
    `plain`: by chroot alone."""
    here = place.fresh("root")
    (here / "prepare").write_text(f"set -eu\ncd {here}\n{prepare}\n")
    drop = f"setpriv --reuid {user} --regid {user} --clear-groups" if user else ""
    enter = "exec /usr/sbin/chroot . sh -euc '" + command + "'" if plain else \
        "/usr/sbin/pivot_root . tmp/old; cd /; umount -l /tmp/old"
    script = f"""set -eu
cd {here}
mkdir disk root
mount -t tmpfs none disk
mkdir disk/upper disk/work
mount -t overlay -o lowerdir={lower},upperdir=disk/upper,workdir=disk/work none root
rm -f root/var/lib/man-db/auto-update  # its trigger after a change of packages takes minutes
sh prepare
for name in tmp run; do mkdir -p root/$name; mount -t tmpfs -o mode=1777 none root/$name; done
mkdir -p root/proc root/sys root/dev root/tmp/bin
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
cp {host.PROGRAM} root/tmp/bin/cupel
mkdir root/tmp/old
cd root
{enter}
exec env -i PATH=/tmp/bin:/usr/bin:/bin HOME=/tmp CUPEL_STATE=/tmp/state {drop} \
sh -euc '{command}'
"""
    return subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)


UNMERGED = """cd root
lib=usr/lib/x86_64-linux-gnu
for name in bin lib lib64; do rm $name; mkdir $name; done
mkdir -p lib/x86_64-linux-gnu
mv $lib/libc.so.6 lib/x86_64-linux-gnu/
cp -L usr/lib64/ld-linux-x86-64.so.2 lib64/
mv usr/bin/bash bin/; ln -s bash bin/sh; cp -a usr/bin/env bin/
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names the loader of x86_64")
@pytest.mark.parametrize("user", [None, host.ORDINARY], ids=["root", "user"])
def test_a_host_whose_usr_is_not_merged(place, user):
    """The loader, the C library and the shell are outside of /usr."""
    done = in_root(place, UNMERGED, f"cupel run --cold --json -c \"$(cat <<\\END\n{SMOKE}END\n)\"",
                  user=user)
    assert done.returncode == 0, done.stderr + done.stdout
    seen = json.loads(json.loads(done.stdout)["stdout"])
    assert seen["lib"] == "/lib" and seen["bash"] == "42\n" and seen["read_only"]


@pytest.mark.parametrize("program", ["broker", "init"])
def test_the_embedded_programs_need_no_library_of_the_host(program):
    """A cupel that is copied to a host or an image without musl runs there."""
    data = (host.BUILD / program).read_bytes()
    offset, size, count = (int.from_bytes(data[at:at + n], "little")
                           for at, n in ((32, 8), (54, 2), (56, 2)))
    kinds = [int.from_bytes(data[offset + i * size:][:4], "little") for i in range(count)]
    assert data[:4] == b"\x7fELF" and 1 in kinds and 3 not in kinds  # PT_LOAD, no PT_INTERP


def test_packages_in_the_folder_of_other_distributions_are_found(place):
    """Fedora, Arch and Alpine keep them beside the version's own library."""
    prepare = """cd root/usr/lib
version=$(basename $(readlink -f ../bin/python3))
mkdir -p $version/site-packages
mv python3/dist-packages/bs4 python3/dist-packages/soupsieve $version/site-packages/
rm -rf python3/dist-packages $version/dist-packages ../../var/lib/dpkg
"""
    done = in_root(place, prepare, "cupel run --cold \"import bs4; print(bs4.__file__)\"; "
                  "cupel doctor | grep -A1 packages")
    assert "/site-packages/bs4/" in done.stdout, done.stdout + done.stderr
    absent = next(line for line in done.stdout.splitlines() if "not there:" in line)
    assert "numpy" in absent and "bs4" not in absent


@pytest.mark.parametrize("program, fix", [
    ("usr/bin/dnf", "sudo dnf install python3-numpy"),
    ("usr/bin/pacman", "sudo pacman -S python-numpy"),
    ("sbin/apk", "sudo apk add py3-numpy"),
])
def test_the_doctor_names_the_command_of_this_distribution(place, program, fix):
    prepare = f"""rm -f root/usr/bin/apt-get; cp /bin/true root/{program}
rm -rf root/usr/lib/python3/dist-packages/numpy root/usr/lib/python3/dist-packages/sklearn"""
    done = in_root(place, prepare, "cupel doctor --json || true")
    row = next(row for row in json.loads(done.stdout)["checks"] if row["name"] == "packages")
    assert fix in row["fix"] and "scikit-learn" in row["fix"] and "apt-get" not in row["fix"]


@pytest.mark.parametrize("system, words", [
    ("ID=fedora", "sudo dnf install gcc"), ("ID=arch", "sudo pacman -S --needed gcc"),
    ("ID=alpine", "sudo apk add gcc"), ("ID=void", "by their names there"),
    ("ID=nobara\nID_LIKE=\"rhel fedora\"", "sudo dnf install gcc"),
])
def test_the_bootstrap_names_the_command_of_other_distributions(place, system, words):
    prepare = f"rm -f root/usr/bin/dpkg-query root/etc/os-release; printf '{system}\n' >root/etc/os-release"
    done = in_root(place, prepare, f"{host.REPO}/dev/bootstrap test")
    assert done.returncode == 1 and words in done.stderr, done.stderr
    assert "not found" not in done.stderr


def test_a_chroot_is_named_as_the_cause(place):
    """The kernel allows no user namespaces there."""
    done = in_root(place, ":", "/tmp/bin/cupel run --cold 1", plain=True)
    assert done.returncode == 125 and "in a chroot" in done.stderr, done.stderr
