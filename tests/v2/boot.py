#!/usr/bin/python3
"""Boots Debian's cloud kernel in software emulation, with cgroup v2 alone, and runs
tests/v2/guest.py in it as pid 1. See README.md.

Usage: boot.py [SUITE...]   the suites of guest.py; all of them if none is named
Environment: BUILD (its folder v2/ is the cache), CUPEL (the program under test),
V2_MINUTES (the bound on the whole run; 60)."""
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("BUILD", REPO / "build"))
PROGRAM = Path(os.environ.get("CUPEL", BUILD / "cupel"))
CACHE = BUILD / "v2"
MINUTES = float(os.environ.get("V2_MINUTES", "60"))
META = "linux-image-cloud-amd64"
# In the order in which they need each other; ext4 is built in.
MODULES = """drivers/virtio/virtio drivers/virtio/virtio_ring drivers/virtio/virtio_pci_modern_dev
    drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci drivers/block/virtio_blk
    drivers/char/hw_random/virtio-rng fs/overlayfs/overlay""".split()
# What no test needs, by its size.
LEFT_OUT = """local src games libexec lib/google-cloud-sdk lib/jvm lib/llvm-14 lib/debug
    lib/postgresql lib/git-core lib/modules lib/firmware lib/qemu lib32 libx32 include/boost
    include/node include/llvm-14 include/llvm-c-14 share/doc share/man share/locale share/info
    share/vim share/unicode share/icons share/cmake-3.25 share/i18n share/java share/qemu
    share/perl share/maven-repo share/tcltk share/postgresql share/gcc share/gdb""".split()
ETC = """alternatives bash.bashrc debian_version fonts group host.conf hosts ld.so.cache ld.so.conf
    ld.so.conf.d localtime matplotlibrc mime.types nsswitch.conf os-release passwd profile protocols
    python3 python3.11 rpc services""".split()
MARK = re.compile(r"^v2: (\d+) suites? failed$", re.M)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def text_of(*command):
    return run(*command, stdout=subprocess.PIPE, text=True).stdout


def fetch_kernel():
    """Debian's newest cloud kernel, unpacked and not installed."""
    depends = text_of("apt-cache", "depends", META)
    name = re.search(r"Depends: (linux-image-\S+)", depends)[1]
    folder = CACHE / name
    if not (folder / "boot").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name, cwd=CACHE)
        run("dpkg", "-x", next(CACHE.glob(name + "_*.deb")), folder)
    version = next((folder / "lib/modules").iterdir()).name
    return folder / "boot" / ("vmlinuz-" + version), folder / "lib/modules" / version / "kernel"


def entry(name, mode, data, number):
    """One file of a cpio archive in the "newc" form: the kernel's own for initramfs."""
    path = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def make_initramfs(modules, path):
    """busybox, the modules, and a script that mounts the disks and goes on in them."""
    script = ["#!/bin/busybox sh", "bb=/bin/busybox", "$bb mount -t devtmpfs dev /dev"]
    files = [("bin/busybox", 0o100755, Path("/usr/bin/busybox").read_bytes())]
    for name in MODULES:
        short = Path(name).name + ".ko"
        files.append((short, 0o100644, (modules / (name + ".ko")).read_bytes()))
        script.append(f"$bb insmod /{short}")
    script += ["$bb mount -t ext4 -o noatime /dev/vda /root",
               "$bb mount -t ext4 -o noatime /dev/vdb /root/opt/work",
               "$bb mount -o move /dev /root/dev",
               "exec $bb switch_root /root /usr/bin/python3 -B /opt/work/tests/v2/guest.py",
               "$bb reboot -f"]
    files.append(("init", 0o100755, "\n".join(script).encode() + b"\n"))
    parts = [entry(name, 0o40755, b"", n) for n, name in enumerate(("bin", "dev", "root"), 1)]
    parts += [entry(*row, n) for n, row in enumerate(files, 10)]
    parts.append(entry("TRAILER!!!", 0, b"", 0))
    path.write_bytes(gzip.compress(b"".join(parts), 1))


def make_disk(path, tree, megabytes, mounts=""):
    """An ext4 image of a folder. The mounts are made in a namespace that ends with it."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    make = f"mke2fs -q -F -t ext4 -O ^has_journal -m 0 -d {tree} {part} {megabytes}M"
    run("unshare", "-m", "sh", "-ec", mounts + make)
    part.rename(path)


def make_system_disk():
    """This system's programs, without what no test needs; kept until a package changes."""
    disk, stamp = CACHE / "system.img", CACHE / "system.stamp"
    state = text_of("dpkg-query", "-W") + Path(__file__).read_text()
    digest = hashlib.sha256(state.encode()).hexdigest()
    if disk.exists() and stamp.exists() and stamp.read_text() == digest:
        return disk
    print("v2: making the system disk", flush=True)
    tree = CACHE / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "run", "tmp", "opt/work", "root", "home", "mnt", "media", "srv",
                 "etc", "usr", "var/tmp", "var/lib/dpkg", "var/lib/cupel"):
        (tree / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (tree / name).chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / name).symlink_to("usr/" + name)
    for name in ETC:
        if Path("/etc", name).exists():
            run("cp", "-a", "/etc/" + name, tree / "etc")
    (tree / "etc/shadow").write_text("root:*:1::::::\n")
    (tree / "etc/shadow").chmod(0o640)
    (tree / "root/.profile").touch()
    (tree / "etc/hostname").write_text("v2\n")
    mounts = f"mount --bind -o ro /usr {tree}/usr\nmount --bind -o ro /var/lib/dpkg {tree}/var/lib/dpkg\n"
    for name in LEFT_OUT:
        if Path("/usr", name).is_dir():
            mounts += f"mount -t tmpfs none {tree}/usr/{name}\n"
    mounts += f"mkdir {tree}/usr/local/bin\n"
    make_disk(disk, tree, 6000, mounts)
    shutil.rmtree(tree)
    stamp.write_text(digest)
    return disk


def make_work_disk(suites):
    """The tests and the program, as they are now."""
    tree, disk = CACHE / "work", CACHE / "work.img"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "build").mkdir(parents=True)
    skipped = shutil.ignore_patterns("__pycache__", "corpus")
    for name in ("tests", "policy", "drivers", "api", "examples"):
        shutil.copytree(REPO / name, tree / name, ignore=skipped)
    shutil.copy(PROGRAM, tree / "build/cupel")
    shutil.copytree(PROGRAM.parent / "gen", tree / "build/gen", ignore=skipped)
    (tree / "suites").write_text(" ".join(suites))
    make_disk(disk, tree, 200)
    shutil.rmtree(tree)
    return disk


def boot(kernel, initramfs, disks):
    """Its console, as it comes; and all of it at the end."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1",
               "-m", "4096", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
               "-device", "virtio-rng-pci", "-kernel", kernel, "-initrd", initramfs, "-append",
               "console=ttyS0 loglevel=1 panic=-1 mitigations=off random.trust_cpu=on "
               "nohz=off highres=off"]  # a timer interrupt that gets lost is soon made up for
    for disk in disks:  # what the guest writes is thrown away
        command += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on"]
    machine = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    end, parts = time.monotonic() + MINUTES * 60, []
    watch = subprocess.Popen(["sh", "-c", f"sleep {int(MINUTES * 60)}; kill {machine.pid}"],
                             start_new_session=True)
    while part := os.read(machine.stdout.fileno(), 65536):
        parts.append(part.replace(b"\r", b""))
        sys.stdout.buffer.write(parts[-1])
        sys.stdout.flush()
    machine.wait()
    os.killpg(watch.pid, 15)
    watch.wait()
    if time.monotonic() >= end:
        print(f"v2: stopped after {MINUTES:g} minutes; V2_MINUTES sets the bound")
    return b"".join(parts).decode(errors="replace")


def main():
    if os.getuid() != 0:
        sys.exit("v2: run this as root: the disk of the guest keeps the owners of its files")
    CACHE.mkdir(parents=True, exist_ok=True)
    kernel, modules = fetch_kernel()
    initramfs = CACHE / "initramfs.gz"
    make_initramfs(modules, initramfs)
    disks = [make_system_disk(), make_work_disk(sys.argv[1:])]
    console = boot(kernel, initramfs, disks)
    (CACHE / "console.log").write_text(console)
    said = MARK.search(console)
    return 1 if not said or said[1] != "0" else 0


if __name__ == "__main__":
    sys.exit(main())
