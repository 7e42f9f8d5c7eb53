"""Runs a command on an emulated machine with NUMA nodes: ``python machine.py KERNEL 4 COMMAND...``.

``KERNEL`` is an unpacked package of a Linux kernel of Debian, the number that of nodes, with two
processors each. The machine sees all files of this one, and writes to none but ``/tmp``, which is
its own. Needs ``apt-get install qemu-system-x86 busybox-static cpio``, and for the kernel
``apt-get download linux-image-6.1.0-56-amd64 && dpkg -x linux-image-*.deb KERNEL``.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: What the machine needs to see the files of this one.
_MODULES = (
    "virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "netfs", "fscache", "9pnet", "9pnet_virtio", "9p",
)  # fmt: skip
_INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
for turn in 1 2 3; do
    for module in {modules}; do /bin/busybox insmod /modules/$module.ko 2> /dev/null; done
done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro,cache=loose root /root
for place in proc sys dev; do /bin/busybox mount -o bind /$place /root/$place; done
/bin/busybox mount -t tmpfs tmp /root/tmp
/bin/busybox mount -t tmpfs shm /root/dev/shm
/bin/busybox chroot /root /bin/sh -c {command}
echo "STATUS $?"
/bin/busybox poweroff -f
"""


def run(kernel, n_nodes, command, *, memory=3072, timeout=3600):
    """Run a shell command; return what it printed and its status.

    Parameters
    ----------
    kernel : Path
        Of an unpacked package.
    n_nodes : int
    command : str
    memory : int
        MiB of all nodes.
    timeout : float
        Seconds.
    """
    found = {path.name.removesuffix(".ko"): path for path in Path(kernel).rglob("*.ko")}
    with tempfile.TemporaryDirectory() as given:
        place, root = Path(given), Path(given) / "root"
        for folder in ("bin", "proc", "sys", "dev", "root", "modules"):
            (root / folder).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin")
        modules = [name for name in _MODULES if name in found]
        for name in modules:
            shutil.copy(found[name], root / "modules")
        init = root / "init"
        init.write_text(_INIT.format(modules=" ".join(modules), command=shlex.quote(command)))
        init.chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in root.rglob("*"))
        with open(place / "initrd", "wb") as stream:
            subprocess.run(
                ["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), stdout=stream,
                cwd=root, check=True,
            )  # fmt: skip
        (image,) = Path(kernel).glob("boot/vmlinuz-*")
        done = subprocess.run(
            [
                "qemu-system-x86_64", "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio",
                "-kernel", image, "-initrd", place / "initrd", "-append", "console=ttyS0 quiet",
                "-accel", "tcg,thread=multi", "-cpu", "max",  # KVM hangs inside some machines
                "-m", str(memory), "-smp", f"{2 * n_nodes},sockets={n_nodes},cores=2",
                *_nodes(n_nodes, memory),
                "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on",
            ],
            capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
        )  # fmt: skip
    found = re.search(r"(?s)(.*)STATUS (\d+)", done.stdout)
    if found is None:
        raise RuntimeError(f"the machine did not come to its end:\n{done.stdout}\n{done.stderr}")
    return found[1], int(found[2])


def _nodes(n_nodes, memory):
    options = []
    for node in range(n_nodes):
        name = f"memory{node}"
        options += ["-object", f"memory-backend-ram,id={name},size={memory // n_nodes}M"]
        cpus = f"{2 * node}-{2 * node + 1}"
        options += ["-numa", f"node,nodeid={node},cpus={cpus},memdev={name}"]
    return options


if __name__ == "__main__":
    text, status = run(Path(sys.argv[1]), int(sys.argv[2]), " ".join(sys.argv[3:]))
    print(text)
    raise SystemExit(status)
